"""The pods for grants to one user, and the claim of the user's home directory."""

from typing import Any

import pytest
from kubespawner import KubeSpawner

from gpuspawner.kube.objects import Manifest, Undecodable, convert
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import ManifestError, PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.decision import Start
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.spawner import in_front_of
from gpuspawner.start.pod_builder import PodBuilder, requested
from tests.unit.makers.courses import NODES, begin, sends
from tests.unit.makers.courses import OFFERS as T4S
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.storage import STORAGE_KINDS

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


class LabelsHomes(KubeSpawner):
    """A class whose claims need what its ``start`` or a hook finds out."""

    def get_pvc_manifest(self) -> Any:
        made = super().get_pvc_manifest()
        made.metadata.labels["project"] = self.project
        return made


HOME = {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}


@pytest.mark.parametrize(
    ("offers", "options"),
    [({}, {"accelerator": None}), (T4S, {}), ({"profile_list": [CPU]}, {"profile": "cpu-only"})],
    ids=["nothing", "accelerators", "profiles"],
)
async def test_a_class_that_cannot_make_its_claim_yet_stops_no_start(
    hub_with, offers, options
) -> None:
    """KubeSpawner makes it in the start; from version 7.1 on, only if there may be none yet."""
    storage = {"storage_pvc_ensure": True, "storage_capacity": "1Gi", "volumes": [HOME]}
    hub = hub_with(*NODES)
    for kind in STORAGE_KINDS:  # there is no such claim
        hub.view.state.mark_known(kind)
    spawner: Any = hub.spawner(in_front_of(LabelsHomes), **storage, **offers)
    sent = sends(spawner)

    await begin(spawner, **options)
    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Start)
    await spawner.start()

    assert len(sent) == 1
