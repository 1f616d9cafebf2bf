"""Each GPU of a node is counted once, in the state that it is in."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.types import Accelerator
from gpuspawner.scheduling.contention import Demand
from gpuspawner.use.census import Held, NodeGpus, census, counted_as, node_gpus, selectors
from tests.unit.makers.objects import cluster, node, pod

GPU = "nvidia.com/gpu"
A100 = Accelerator(key="a100", display_name="NVIDIA A100", resource=GPU, node_selector={"gpu": "a"})
ANY = Accelerator(key="any", display_name="Any", resource=GPU, node_selector={"pool": "gpus"})
CORDONED = {"unschedulable": True}
NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}
RESERVED = {"taints": [{"key": "team", "value": "vision", "effect": "NoSchedule"}]}
OF_GPUS = {"taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}]}


def rows(made, *pods, ours=0, offered=(A100,)):
    (there,) = cluster(made, pods=pods).nodes.values()
    return node_gpus(there, {GPU: ours}, selectors(offered))


def held(made, *pods, ours=0):
    (row,) = rows(made, *pods, ours=ours)
    return row.held


def a100(name="a", gpus="8", **fields):
    return node(name, labels={"gpu": "a", "pool": "gpus"}, gpu=gpus, **fields)


def taking(count, name="p", on="a"):
    return pod(name, node=on, requests={"gpu": str(count)})


def test_gpus_are_this_hubs_or_others_or_free():
    assert held(a100(), taking(2, "p"), taking(3, "q"), ours=2) == Held(free=3, ours=2, others=3)


def test_gpus_that_are_not_healthy_are_away():
    broken = a100(gpus="6", capacity={GPU: "8"})

    assert held(broken, taking(1), ours=1) == Held(free=5, ours=1, away=2)


@pytest.mark.parametrize("why", [CORDONED, NOT_READY, RESERVED])
def test_free_gpus_of_a_node_that_takes_no_server_are_away(why):
    assert held(a100(**why), taking(2), ours=2) == Held(ours=2, away=6)


def test_a_taint_for_gpus_and_one_that_is_tolerated_keep_nobody_away():
    assert held(a100(**OF_GPUS)).free == 8
    tolerating = replace(A100, tolerations=({"key": "team", "operator": "Exists"},))
    (row,) = rows(a100(**RESERVED), offered=(tolerating,))
    assert row.held.free == 8


@pytest.mark.parametrize(
    "tolerated", [{"key": "team", "operator": "Equal", "value": "vision"}, {"operator": "Exists"}]
)
def test_what_every_server_tolerates_keeps_nobody_away(tolerated):
    (there,) = cluster(a100(**RESERVED)).nodes.values()

    (row,) = node_gpus(there, {}, selectors((A100,), (tolerated,)))

    assert row.held.free == 8


def test_a_node_has_a_row_for_each_resource_and_none_without_gpus():
    sliced = node("a", gpu="1", **{"nvidia.com/mig-1g.10gb": "7"})

    assert [(it.resource, it.part) for it in rows(sliced)] == [
        (GPU, ""),
        ("nvidia.com/mig-1g.10gb", "slice"),
    ]
    assert rows(node("a")) == ()


def test_a_node_is_of_the_accelerator_that_narrows_the_others_down():
    narrow = replace(A100, node_selector={"gpu": "a", "pool": "gpus"})
    twin = replace(A100, key="twin")

    assert rows(a100(), offered=(ANY, narrow))[0].accelerators == ("a100",)
    assert rows(a100(), offered=(A100, twin))[0].accelerators == ("a100", "twin")
    assert rows(node("b", gpu="1"), offered=(A100,))[0].accelerators == ()


@pytest.mark.parametrize(
    ("its", "kind", "name"),
    [
        (("t4",), GPU, "t4"),
        (("t4",), "any", "t4"),
        (("t4", "t4-night"), "t4-night", "t4-night"),
        ((), GPU, GPU),
        (None, "any", "any"),
    ],
    ids=["a profile's", "any GPU", "two of the same nodes", "no model", "no node yet"],
)
def test_a_pod_s_gpus_count_as_those_of_its_node(its, kind, name):
    row = None if its is None else NodeGpus("a", GPU, its, "", Held())

    assert counted_as(row, kind) == name


def test_a_promise_and_what_the_line_keeps_are_no_longer_free():
    nodes = (*rows(a100("a", "2")), *rows(a100("b", "4")))
    promise = Demand({GPU: 4, "pods": 1}, frozenset({"a", "b"}))

    found = census(nodes, [promise], [("a", GPU, 1)])

    assert [it.held for it in found.nodes] == [Held(free=1, line=1), Held(reserved=4)]
    assert [(it.key, it.nodes, it.held) for it in found.accelerators] == [
        ("a100", 2, Held(free=1, reserved=4, line=1))
    ]


def test_equal_promises_are_counted_one_after_the_other():
    nodes = (*rows(a100("a", "3")), *rows(a100("b", "3")))
    promise = Demand({GPU: 2}, None)

    found = census(nodes, [promise] * 3)

    assert [it.held for it in found.nodes] == [Held(free=1, reserved=2)] * 2


def test_gpus_that_nobody_offers_are_counted_by_their_resource():
    found = census(rows(node("b", gpu="2"), offered=()))

    assert [(it.key, it.held.free) for it in found.accelerators] == [(GPU, 2)]


_few = st.integers(0, 9)


@given(_few, _few, st.lists(_few, max_size=4), _few, st.booleans(), st.lists(_few), st.lists(_few))
def test_the_states_of_a_nodes_gpus_sum_to_its_capacity(
    capacity, healthy, taken, ours, cordoned, promised, kept
):
    made = a100(gpus=str(healthy), capacity={GPU: str(capacity)}, unschedulable=cordoned)
    pods = [taking(count, f"p{number}") for number, count in enumerate(taken)]

    found = census(
        rows(made, *pods, ours=ours),
        [Demand({GPU: count}, None) for count in promised],
        [("a", GPU, count) for count in kept],
    )

    assert sum(sum(it.held) for it in found.nodes) == max(capacity, healthy)
    assert all(amount >= 0 for it in found.nodes for amount in it.held)
    assert sum(sum(it.held) for it in found.accelerators) == max(capacity, healthy)
