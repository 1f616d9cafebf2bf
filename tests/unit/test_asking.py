"""A person before the offers."""

from __future__ import annotations

import pytest

from gpuspawner.asking import Asking
from gpuspawner.kube.objects import Odd
from gpuspawner.manifest import ManifestError, PodRules
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.pods import Plain
from gpuspawner.policy import Grant, Person
from gpuspawner.preflight.ask import Ask

OFFERS = Offers.parse(accelerators={"t4": {"node_selector": {"pool": "gpu"}, "counts": [1, 2]}})


def asking(**spec: object) -> Asking:
    stock: Plain = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "n"}], **spec}}
    return Asking(Person("alice"), OFFERS, PodRules(), stock)


def test_another_request_comes_with_its_own_pod() -> None:
    asker = asking()

    variant = asker.variant(GPURequest("t4", 2))

    assert variant is not None
    grant, pod = variant
    assert grant == Grant(OFFERS.accelerators["t4"], 2)
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert asker.stock is not None
    assert "resources" not in asker.stock["spec"]["containers"][0]


def test_what_is_not_on_offer_is_no_alternative() -> None:
    assert asking().variant(GPURequest("h100", 1)) is None


def test_what_contradicts_the_hub_s_configuration_is_no_alternative_and_no_pod() -> None:
    asker = asking(nodeSelector={"pool": "users"})

    assert asker.variant(GPURequest("t4", 1)) is None
    with pytest.raises(ManifestError, match="pool=users"):
        asker.pod(Grant(OFFERS.accelerators["t4"], 1))


def test_without_a_stock_pod_nothing_can_be_judged() -> None:
    asker = Asking(Person("alice"), OFFERS, PodRules(), None)

    assert isinstance(Ask("hub", "p", asker.pod(Grant()), Grant()).subject, Odd)
