"""Counts over all nodes, which follow the cluster's changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.preflight import counts as counting
from gpuspawner.preflight.counts import NodeCounts
from gpuspawner.preflight.decision import ResourceRoom, TaintedNodes
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.worlds import GPU, node, pod

pytestmark = pytest.mark.usefixtures("clock")

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
    counts = NodeCounts(state_of(node("a", 2), node("b", 4)))

    assert [counts.lacks_devices(asking(gpus)) for gpus in (0, 4, 5)] == [False, False, True]
    assert NodeCounts(state_of()).lacks_devices(asking(1))


def test_devices_follow_the_pods_that_come_and_go() -> None:
    state = state_of(node("a", 2))
    counts = NodeCounts(state)
    assert not counts.lacks_devices(asking(2))

    state.put(convert("Pod", pod("other", 1, on="a")))
    assert counts.lacks_devices(asking(2))

    state.remove("Pod", "jhub", "other")
    assert not counts.lacks_devices(asking(2))


def test_taints_count_on_nodes_that_the_pod_selects_most_frequent_first() -> None:
    other = {**TAINT, "key": "more"}
    unselected = {**node("d", 1, taints=[TAINT]), "metadata": {"name": "d", "labels": {}}}
    counts = NodeCounts(
        state_of(
            node("a", 1, taints=[TAINT]),
            node("b", 1, taints=[AWAY, other]),
            node("c", 1, taints=[other, TAINT]),
            unselected,
            node("e", 1),
        )
    )

    assert counts.taints(asking(1)) == (
        TaintedNodes("more", "x", "NoSchedule", nodes=2, large=2),
        TaintedNodes("team", "x", "NoSchedule", nodes=1, large=1),
    )
    tolerant = asking(1, tolerations=[{"key": "more", "operator": "Exists"}])
    assert counts.taints(tolerant) == (TaintedNodes("team", "x", "NoSchedule", nodes=2, large=2),)
    assert counts.taints(asking(0)) == (
        TaintedNodes("team", "x", "NoSchedule", nodes=2, large=2),
        TaintedNodes("more", "x", "NoSchedule", nodes=2, large=2),
    )


def test_taints_of_large_enough_nodes_come_first_and_those_of_nodes_without_gpus_never() -> None:
    other = {**TAINT, "key": "more"}
    small = [node(name, 1, taints=[other]) for name in ("a", "b")]
    masters = [node(f"m-{it}", 0, taints=[{**TAINT, "key": "master"}]) for it in range(3)]
    counts = NodeCounts(state_of(*small, *masters, node("big", 8, taints=[TAINT])))

    assert counts.taints(asking(4)) == (
        TaintedNodes("team", "x", "NoSchedule", nodes=1, large=1),
        TaintedNodes("more", "x", "NoSchedule", nodes=2),
    )
    assert [it.large for it in counts.taints(asking(1))] == [2, 1]


def test_taints_count_on_nodes_whose_drivers_may_serve_the_devices() -> None:
    devices = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    state = state_of(node("a", 0, taints=[TAINT]))
    state.put(convert("DeviceClass", devices))
    state.mark_known("DeviceClass")

    assert NodeCounts(state).taints(asking(1)) == (
        TaintedNodes("team", "x", "NoSchedule", nodes=1, large=1),
    )


def test_taints_follow_the_nodes() -> None:
    state = state_of(node("a", 1, taints=[TAINT]))
    counts = NodeCounts(state)
    assert counts.taints(asking(1)) != ()

    state.put(convert("Node", node("a", 1)))

    assert counts.taints(asking(1)) == ()


OTHER = "example.com/gpu"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
WRONG = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}
NEAR = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}
    ]
}


def test_what_is_kept_equals_a_fresh_count() -> None:
    both = node("b", 4, taints=[TAINT])
    both["status"]["allocatable"] |= {OTHER: "1"}
    state = state_of(node("a", 2), both, node("c", 1))
    counts = NodeCounts(state)
    pods = [
        asking(gpus, tolerations=tolerations, **spec)
        for gpus in (1, 4)
        for tolerations in ([], [{"key": "team", "operator": "Exists"}])
        for spec in (
            {},
            {"nodeSelector": {"gpu": "none"}},
            {"on": "c"},
            {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NEAR}
                }
            },
            {"topologySpreadConstraints": [{**SPREAD, "labelSelector": WRONG}]},
            {"resources": {"requests": {"cpu": "wrong"}}},
        )
    ]

    def check() -> None:
        for its, resource in product(pods * 2, (GPU, OTHER)):
            nodes = counts.candidates(its)
            assert nodes == counting.candidates(state, its)
            assert counts.room(nodes, resource, 2) == counting.room(nodes, resource, 2)
        for its, first in product(pods[:3], (None, GPU)):
            nodes = counts.candidates(its)
            short = counting.shortage(state, its, nodes, first)
            assert counts.shortage(its, nodes, first) == short

    check()
    state.put(convert("Pod", pod("other", 1, on="a")))
    check()
    state.put(convert("Node", node("b", 4)))
    check()
    assert counts.candidates(None) == ()


def test_the_devices_of_the_same_nodes_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def room(nodes: Sequence[NodeInfo], resource: str, amount: int) -> ResourceRoom:
        asked.append((len(nodes), resource))
        return counted(nodes, resource, amount)

    counted = counting.room
    monkeypatch.setattr(counting, "room", room)
    counts = NodeCounts(state_of(node("a", 2), node("b", 2)))

    for gpus in (3, 4, 8):
        nodes = counts.candidates(asking(gpus))
        found = counts.room(nodes, GPU, gpus)
        assert (found.asked, found.most_free) == (gpus, 2)
        assert counts.shortage(asking(gpus), nodes, GPU) == found

    assert asked == [(2, GPU)]
