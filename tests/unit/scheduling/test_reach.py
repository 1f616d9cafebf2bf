"""Where a pod could run if others ended."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import Rules, evaluate
from gpuspawner.scheduling.reach import reach
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.storage import NOW, claim
from tests.unit.makers.worlds import GPU, NAMESPACE, node, pod

HOME = [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]
STATE = ClusterState.from_objects(
    nodes=[node("free", 2), node("full", 1), node("away", 2, unschedulable=True)],
    pods=[pod("x", 1, on="full")],
)


def nodes_for(state: ClusterState = STATE, claims: Any = (), **spec: Any) -> frozenset[str]:
    wanted = convert("Pod", pod("new", spec.pop("gpus", 1), **spec))
    assert isinstance(wanted, Pod)
    return reach(state, wanted, claims)


def test_all_nodes_count_that_have_enough_also_if_it_fits_on_one_now() -> None:
    assert nodes_for() == {"free", "full"}
    assert nodes_for(gpus=2) == {"free"}
    assert nodes_for(gpus=3) == frozenset()


def test_nodes_that_the_pod_may_not_use_dont_count() -> None:
    assert nodes_for(nodeSelector={"gpu": "t4"}) == frozenset()
    assert nodes_for(nodeSelector={"gpu": "a100"}) == {"free", "full"}


def test_a_node_counts_whose_driver_may_serve_the_devices() -> None:
    class_ = {"metadata": {"name": "g"}, "spec": {"extendedResourceName": GPU}}
    state = ClusterState.from_objects(
        nodes=[node("plugin", 1), node("claims", 0)], pods=[], deviceClasses=[class_]
    )
    assert nodes_for(state) == {"plugin", "claims"}
    assert nodes_for(state, gpus=2) == {"claims"}


def test_a_toleration_opens_no_node_to_a_version_that_does_not_compare() -> None:
    taint = {"key": "sla", "value": "950", "effect": "NoSchedule"}
    rules = Rules.of_version("v1.34.4")
    state = ClusterState.from_objects(nodes=[node("a", 1, taints=[taint])], pods=[], rules=rules)
    assert nodes_for(state, tolerations=[{"key": "sla", "operator": "Gt", "value": "9"}]) == set()


def test_a_claim_that_the_hub_may_not_read_keeps_the_pod_off_no_node() -> None:
    full = ClusterState.from_objects(nodes=[node("full", 1)], pods=[pod("x", 1, on="full")])
    wanted = pod("new", volumes=HOME)
    assert evaluate(full, wanted).busy == ("full",)
    assert nodes_for(full, volumes=HOME) == {"full"}


@pytest.mark.parametrize(
    "claims",
    [
        [claim(class_="now", namespace=NAMESPACE)],
        [claim(class_="", namespace=NAMESPACE)],
        [],
    ],
    ids=["by its class", "by hand", "once a hook has made it"],
)
def test_a_claim_that_may_soon_be_bound_keeps_the_pod_off_no_node(claims) -> None:
    state = ClusterState.from_objects(
        nodes=[node("free", 2)],
        pods=[],
        persistentVolumeClaims=claims,
        persistentVolumes=[],
        storageClasses=[NOW],
    )
    assert nodes_for(state, volumes=HOME) == {"free"}


def test_a_pod_or_a_claim_that_nobody_understands_reaches_nothing() -> None:
    assert nodes_for(claims=[{"spec": "none"}]) == frozenset()
    odd = {"operator": "Near", "key": "gpu"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [odd]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert nodes_for(affinity=affinity) == frozenset()
