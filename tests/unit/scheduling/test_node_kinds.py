"""Nodes are grouped by what static rules read of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.node_kinds import NodeKinds, Reads
from tests.unit.scheduling.objects import node

FEW = 2
"""Labels with more values than this belong to no kind here."""

NOTHING = Reads({})
HOST = "kubernetes.io/hostname"


def info(plain):
    made = NodeInfo(plain["metadata"]["name"])
    made.set_node(convert("Node", plain))
    return made


def kinds(*nodes):
    """Return the kinds of some nodes; `a` to `d` already make host names individual."""
    made = NodeKinds(FEW)
    for plain in nodes:
        made.put(info(plain))
    return made


def names(made, reads=NOTHING):
    return sorted([it.name for it in alike.nodes] for alike in made.alike(reads))


FOUR = [node(name, labels={"zone": "x" if name < "c" else "y"}) for name in "abcd"]


def test_nodes_that_differ_only_in_individual_labels_are_of_one_kind():
    assert names(kinds(*FOUR)) == [["a", "b"], ["c", "d"]]


def test_a_label_that_gets_too_many_values_stops_dividing_the_nodes():
    made = kinds(*FOUR[:2])
    assert names(made) == [["a"], ["b"]]
    made.put(info(FOUR[2]))
    assert names(made) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    "changed",
    [
        node("b", unschedulable=True),
        node("b", taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        node("b", gpu="1"),
        node("b", capacity={"cpu": "8", "nvidia.com/gpu": "1"}),
        node("b", labels={"zone": "x"}),
        node("b", gpu="not a number"),
    ],
)
def test_what_static_rules_read_divides_the_nodes(changed):
    made = kinds(*(node(name) for name in "abcd"))
    assert names(made) == [["a", "b", "c", "d"]]
    made.put(info(changed))
    assert names(made) == [["a", "c", "d"], ["b"]]


def test_amounts_of_cpu_and_memory_divide_no_nodes():
    made = kinds(*(node(name, memory=f"{256 + at}Gi") for at, name in enumerate("abcd")))
    assert names(made) == [["a", "b", "c", "d"]]


def test_values_of_individual_labels_divide_only_for_those_who_name_them():
    made = kinds(*(node(name) for name in "abcd"))
    assert names(made, Reads({HOST: frozenset("bd")})) == [["a", "c"], ["b"], ["d"]]
    assert names(made, Reads({HOST: None})) == [["a"], ["b"], ["c"], ["d"]]
    assert names(made, Reads({HOST: frozenset()})) == [["a", "b", "c", "d"]]


def test_a_node_without_an_individual_label_is_not_like_one_with_another_value():
    made = kinds(*(node(name) for name in "abcd"))
    made.put(info({**node("e"), "metadata": {"name": "e", "labels": {}}}))
    assert names(made, Reads({HOST: frozenset("b")})) == [["a", "c", "d"], ["b"], ["e"]]


def test_names_divide_only_for_those_who_name_them():
    made = kinds(*(node(name) for name in "abcd"))
    assert names(made, Reads({}, names=frozenset("c"))) == [["a", "b", "d"], ["c"]]


def test_a_node_that_is_gone_is_in_no_group():
    made = kinds(*FOUR)
    made.drop("a")
    assert names(made) == [["b"], ["c", "d"]]
    made.drop("b")
    assert names(made) == [["c", "d"]]


changes = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from("xyz"),
        st.booleans(),
        st.sampled_from(["0", "1"]),
        st.booleans(),
    ),
    max_size=40,
)
reading = st.builds(
    Reads,
    st.dictionaries(
        st.sampled_from(["zone", HOST, "none"]), st.none() | st.frozensets(st.sampled_from("abx"))
    ),
    st.frozensets(st.sampled_from("abc")),
)


@given(changes, reading)
def test_each_node_is_in_one_group_with_nodes_that_are_read_alike(made_changes, reads):
    made, known = NodeKinds(FEW), {}
    for name, zone, cordoned, gpus, goes in made_changes:
        before, stamp = list(made.alike(reads)), made.stamp(reads)
        if goes:
            known.pop(name, None)
            made.drop(name)
        else:
            plain = node(name, labels={"zone": zone}, unschedulable=cordoned, gpu=gpus)
            there = known.setdefault(name, NodeInfo(name))
            there.set_node(convert("Node", plain))
            made.put(there)
        groups = list(made.alike(reads))
        assert stamp != made.stamp(reads) or before == groups
        assert sorted(it.name for alike in groups for it in alike.nodes) == sorted(known)
        for alike in groups:
            assert len({_read(it, reads) for it in alike.nodes}) == 1
            assert list(alike.nodes) == sorted(alike.nodes, key=lambda it: it.name)
        assert len({alike.key for alike in groups}) == len(groups)


def _read(there, reads):
    """Return what static rules read of a node."""
    return (
        there.node.spec.unschedulable,
        there.taints,
        there.allocatable.get("nvidia.com/gpu"),
        there.name if there.name in reads.names else None,
        tuple(
            (value := there.labels.get(key)) is not None
            and (value if values is None or value in values else "other")
            for key, values in sorted(reads.labels.items())
        ),
    )
