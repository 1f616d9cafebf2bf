"""The pods for grants to one user."""

import pytest

from gpuspawner.kube.objects import Manifest, Undecodable, convert
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import ManifestError, PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.start.pod_builder import PodBuilder, requested

OFFERS = Offers.parse(accelerators={"t4": {"node_selector": {"pool": "gpu"}, "counts": [1, 2]}})


def building(**spec: object) -> PodBuilder:
    stock: Manifest = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "n"}], **spec}}
    return PodBuilder(OFFERS, PodRules(), stock, Later(Placements()))


def test_a_grant_gets_a_pod_of_its_own() -> None:
    builder = building()

    pod = builder.pod(Grant(OFFERS.accelerators["t4"], 2))

    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert "resources" not in builder.stock["spec"]["containers"][0]


def test_a_grant_that_contradicts_the_configuration_has_no_pod() -> None:
    builder = building(nodeSelector={"pool": "users"})

    with pytest.raises(ManifestError, match="pool=users"):
        builder.pod(Grant(OFFERS.accelerators["t4"], 1))


def test_without_a_stock_pod_the_spec_is_unknown() -> None:
    builder = PodBuilder(OFFERS, PodRules(), None, Later(Placements()))

    assert isinstance(Proposal("hub", "p", builder.pod(Grant()), Grant()).subject, Undecodable)


def test_what_a_pod_requests_is_read_from_its_containers() -> None:
    limits = {"limits": {"nvidia.com/gpu": "2", "memory": "1Gi"}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "n", "resources": limits}]}}

    grant = requested(convert("Pod", pod), DEFAULT_RULES)

    assert grant.gpus == 2
    assert grant.accelerator.resource == "nvidia.com/gpu"
    assert requested(None, DEFAULT_RULES) == Grant()
