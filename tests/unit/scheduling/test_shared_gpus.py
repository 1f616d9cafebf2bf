"""Which nodes' device plugins refuse a container that asks for several shares of a GPU."""

from __future__ import annotations

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState
from gpuspawner.scheduling.shared_gpus import refuses, several
from tests.unit.makers.worlds import GPU, Plain, labelled, node, pod

pytestmark = pytest.mark.usefixtures("clock")

GKE = "cloud.google.com/gke-gpu-sharing-strategy"
MIG = "nvidia.com/mig-1g.5gb"


def asked(*limits: dict[str, str], before: dict[str, str] | None = None) -> frozenset[str]:
    """Return what containers with these limits ask for, and an init container *before* them."""
    containers = [{"name": "c", "resources": {"limits": it}} for it in limits]
    first = [{"name": "i", "resources": {"limits": before}}] if before else []
    made = convert("Pod", pod("a", containers=containers, initContainers=first))
    assert isinstance(made, Pod)
    return several(made)


def test_only_a_container_that_asks_for_several_gpus_of_nvidia_counts() -> None:
    assert asked({GPU: "2", "memory": "1Gi"}) == {GPU}
    assert asked({GPU: "1"}, {GPU: "1"}) == frozenset()
    assert asked({"amd.com/gpu": "2"}) == frozenset()
    assert asked({}, before={MIG: "2"}) == {MIG}
    assert asked() == frozenset()


def answer(resource: str, labels: dict[str, str], *others: Plain) -> bool | None:
    """Return what a node with labels, on which other pods run, says to several of a resource."""
    state = ClusterState.from_objects(nodes=[labelled(node("n", 10), labels)], pods=others)
    return refuses(state.nodes["n"], {resource})


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        (f"{GPU}.sharing-strategy", "mps", True),
        (f"{GPU}.sharing-strategy", "time-slicing", None),
        (f"{GPU}.sharing-strategy", "none", False),
        (f"{MIG}.sharing-strategy", "mps", False),
        (GKE, "time-sharing", True),
        (GKE, "TIME_SHARING", True),
        (GKE, "mps", None),
    ],
)
@pytest.mark.parametrize("resource", [GPU, f"{GPU}.shared"])
def test_labels_tell_whether_the_plugin_refuses_several_shares(
    resource: str, label: str, value: str, expected: bool | None
) -> None:
    assert answer(resource, {label: value}) is expected


def test_a_pod_that_has_several_shares_shows_that_the_plugin_gives_them() -> None:
    labels = {f"{GPU}.sharing-strategy": "mps"}

    assert answer(GPU, labels, pod("one", 1, on="n")) is True
    assert answer(GPU, labels, pod("two", 2, on="n")) is False


def test_what_asks_for_one_is_refused_nowhere() -> None:
    shared = labelled(node("n", 10), {f"{GPU}.sharing-strategy": "mps"})
    state = ClusterState.from_objects(nodes=[shared], pods=[])

    assert refuses(state.nodes["n"], frozenset()) is False
