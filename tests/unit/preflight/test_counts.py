"""Counts over all nodes, which follow the cluster's changes."""

from __future__ import annotations

from typing import Any

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.preflight.counts import Counts
from gpuspawner.preflight.decision import TaintedNodes
from gpuspawner.scheduling.state import ClusterState
from tests.unit.preflight.worlds import node, pod

TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
AWAY = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def state_of(*nodes: dict[str, Any]) -> ClusterState:
    state = ClusterState()
    state.mark_known("PriorityClass")
    for its in nodes:
        state.put(convert("Node", its))
    return state


def asking(gpus: int, **spec: Any) -> Pod:
    made = convert("Pod", pod("p", gpus, **spec))
    assert isinstance(made, Pod)
    return made


def test_devices_lack_if_no_single_node_has_enough_free() -> None:
    counts = Counts(state_of(node("a", 2), node("b", 4)))

    assert [counts.lacks_devices(asking(gpus)) for gpus in (0, 4, 5)] == [False, False, True]
    assert Counts(state_of()).lacks_devices(asking(1))


def test_devices_follow_the_pods_that_come_and_go() -> None:
    state = state_of(node("a", 2))
    counts = Counts(state)
    assert not counts.lacks_devices(asking(2))

    state.put(convert("Pod", pod("other", 1, on="a")))
    assert counts.lacks_devices(asking(2))

    state.remove("Pod", "jhub", "other")
    assert not counts.lacks_devices(asking(2))


def test_taints_count_on_nodes_that_the_pod_selects_most_frequent_first() -> None:
    other = {**TAINT, "key": "more"}
    unselected = {**node("d", 1, taints=[TAINT]), "metadata": {"name": "d", "labels": {}}}
    counts = Counts(
        state_of(
            node("a", 1, taints=[TAINT]),
            node("b", 1, taints=[AWAY, other]),
            node("c", 1, taints=[other, TAINT]),
            unselected,
            node("e", 1),
        )
    )

    assert counts.taints(asking(1)) == (
        TaintedNodes("more", "x", "NoSchedule", nodes=2),
        TaintedNodes("team", "x", "NoSchedule", nodes=1),
    )
    tolerant = asking(1, tolerations=[{"key": "more", "operator": "Exists"}])
    assert counts.taints(tolerant) == (TaintedNodes("team", "x", "NoSchedule", nodes=2),)
    assert counts.taints(asking(0)) == (
        TaintedNodes("team", "x", "NoSchedule", nodes=2),
        TaintedNodes("more", "x", "NoSchedule", nodes=2),
    )


def test_taints_follow_the_nodes() -> None:
    state = state_of(node("a", 1, taints=[TAINT]))
    counts = Counts(state)
    assert counts.taints(asking(1)) != ()

    state.put(convert("Node", node("a", 1)))

    assert counts.taints(asking(1)) == ()
