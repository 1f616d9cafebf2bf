"""Where a pod could run if others ended."""

from __future__ import annotations

from typing import Any

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling.reach import reach
from gpuspawner.scheduling.state import ClusterState
from tests.unit.preflight.worlds import node, pod

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


def test_a_pod_or_a_claim_that_nobody_understands_reaches_nothing() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "there-is-none"}}
    assert nodes_for(volumes=[{"name": "home", **claim}]) == frozenset()
    assert nodes_for(claims=[{"spec": "none"}]) == frozenset()
    odd = {"operator": "Near", "key": "gpu"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [odd]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert nodes_for(affinity=affinity) == frozenset()
