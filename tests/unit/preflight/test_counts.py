"""Counts over all nodes, which follow the cluster's changes."""

from itertools import product

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight import counts as counting
from gpuspawner.preflight.counts import NodeCounts
from gpuspawner.preflight.decision import TaintedNodes
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.objects import named, required
from tests.unit.makers.worlds import A100, GPU, node, pod

pytestmark = pytest.mark.usefixtures("clock")

TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
AWAY = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def state_of(*nodes):
    state = ClusterState()
    state.mark_known("PriorityClass")
    for its in nodes:
        state.put(convert("Node", its))
    return state


def asking(gpus, **spec):
    return convert("Pod", pod("p", gpus, **spec))


@pytest.mark.parametrize(
    ("nodes", "gpus", "lacks"),
    [([2, 4], 0, False), ([2, 4], 4, False), ([2, 4], 5, True), ([], 1, True)],
)
def test_devices_lack_if_no_single_node_has_enough_free(nodes, gpus, lacks):
    state = state_of(*(node(f"n{at}", has) for at, has in enumerate(nodes)))

    assert NodeCounts(state).lacks_devices(asking(gpus)) is lacks


MORE = {**TAINT, "key": "more"}


def tainted(key, nodes, large=0):
    return TaintedNodes(key, "x", "NoSchedule", nodes, large)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (asking(1), (tainted("more", 2, 2), tainted("team", 1, 1))),
        (asking(1, tolerations=[{"key": "more", "operator": "Exists"}]), (tainted("team", 2, 2),)),
        (asking(0), (tainted("team", 2, 2), tainted("more", 2, 2))),
    ],
    ids=["with a GPU", "with a toleration", "without a GPU"],
)
def test_taints_count_on_nodes_that_the_pod_selects_most_frequent_first(asked, expected):
    nodes = [
        node("a", 1, taints=[TAINT]),
        node("b", 1, taints=[AWAY, MORE]),
        node("c", 1, taints=[MORE, TAINT]),
        {**node("d", 1, taints=[TAINT]), "metadata": {"name": "d", "labels": {}}},
        node("e", 1),
    ]

    assert NodeCounts(state_of(*nodes)).taints(asked) == expected


def test_taints_of_large_enough_nodes_come_first_and_those_of_nodes_without_gpus_never():
    small = [node(name, 1, taints=[MORE]) for name in ("a", "b")]
    masters = [node(f"m-{it}", 0, taints=[{**TAINT, "key": "master"}]) for it in range(3)]
    counts = NodeCounts(state_of(*small, *masters, node("big", 8, taints=[TAINT])))

    assert counts.taints(asking(4)) == (tainted("team", 1, 1), tainted("more", 2))
    assert [it.large for it in counts.taints(asking(1))] == [2, 1]


def test_taints_count_on_nodes_whose_drivers_may_serve_the_devices():
    devices = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    state = state_of(node("a", 0, taints=[TAINT]))
    state.put(convert("DeviceClass", devices))
    state.mark_known("DeviceClass")

    assert NodeCounts(state).taints(asking(1)) == (tainted("team", 1, 1),)


OTHER = "example.com/gpu"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
WRONG = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}


def test_what_is_kept_equals_a_fresh_count():
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
            required(named("c")),
            {"topologySpreadConstraints": [{**SPREAD, "labelSelector": WRONG}]},
            {"resources": {"requests": {"cpu": "wrong"}}},
        )
    ]

    def check():
        fresh = NodeCounts(state)
        for its, resource in product(pods * 2, (GPU, OTHER)):
            nodes = counts.candidates(its)
            assert nodes == fresh.candidates(its)
            assert counts.room(nodes, resource, 2) == counting.room(nodes, resource, 2)
            assert counts.lacks_devices(its) == fresh.lacks_devices(its)
        for its, grant in product(pods[:3], (Grant(), Grant(A100, 1))):
            nodes = counts.candidates(its)
            short = fresh.shortage(its, fresh.candidates(its), grant)
            assert counts.shortage(its, nodes, grant) == short
            assert counts.taints(its) == fresh.taints(its)

    check()
    state.put(convert("Pod", pod("other", 1, on="a")))
    state.put(convert("Pod", pod("large", 4, on="b")))
    check()
    state.put(convert("Node", node("b", 4)))
    state.remove("Pod", "jhub", "large")
    check()
    assert counts.candidates(None) == ()


def test_the_devices_of_the_same_nodes_are_counted_once(monkeypatch):
    asked = []

    def room(nodes, resource, amount):
        asked.append((len(nodes), resource))
        return counted(nodes, resource, amount)

    counted = counting.room
    monkeypatch.setattr(counting, "room", room)
    counts = NodeCounts(state_of(node("a", 2), node("b", 2)))

    for gpus in (3, 4, 8):
        nodes = counts.candidates(asking(gpus))
        found = counts.room(nodes, GPU, gpus)
        assert (found.asked, found.most_free) == (gpus, 2)
        assert counts.shortage(asking(gpus), nodes, Grant(A100, gpus)) == found

    assert asked == [(2, GPU)]
