"""Nodes are grouped by what static rules read of them."""

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import node_kinds
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.node_kinds import LabelValues, NodeKinds, Reads
from tests.unit.makers.objects import node

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


def groups(made, reads=NOTHING):
    return [nodes for kind in made for nodes in made.alike(kind, reads)]


def names(made, reads=NOTHING):
    return sorted([it.name for it in nodes] for nodes in groups(made, reads))


FOUR = [node(name, labels={"zone": "x" if name < "c" else "y"}) for name in "abcd"]


def test_nodes_that_differ_only_in_individual_labels_are_of_one_kind():
    assert names(kinds(*FOUR)) == [["a", "b"], ["c", "d"]]


def test_a_label_that_gets_too_many_values_stops_dividing_the_nodes():
    made = kinds(*FOUR[:2])
    assert names(made) == [["a"], ["b"]]
    made.put(info(FOUR[2]))
    assert names(made) == [["a", "b"], ["c"]]


def test_no_change_moves_more_than_a_few_nodes_to_coarser_kinds(monkeypatch):
    monkeypatch.setattr(node_kinds, "_MOVED_AT_ONCE", 1)
    made = kinds(*(node(name) for name in "abc"))
    assert len(names(made)) == 3 - 1
    made.put(info(node("d")))
    assert names(made) == [["a", "b", "c", "d"]]


def test_broken_devices_divide_the_nodes():
    made = kinds(*(node(name, gpu="2") for name in "abcd"))
    made.put(info(node("e", gpu="1", capacity={"nvidia.com/gpu": "2"})))
    made.put(info(node("f", gpu="2", capacity={"nvidia.com/gpu": "3"})))
    assert names(made) == [["a", "b", "c", "d"], ["e"], ["f"]]


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


def test_a_kind_has_a_new_revision_exactly_if_its_nodes_or_their_labels_change():
    made, first = NodeKinds(FEW), info(node("a"))
    for it in (first, *(info(node(name)) for name in "bcd")):
        made.put(it)

    def revision_after(change):
        change()
        [kind] = (it for it in made if "b" in it.by_name)
        return kind.revision

    def changes(**to):
        first.set_node(convert("Node", {**node("a", **to)}))
        made.put(first)

    begin = revision_after(lambda: None)
    assert revision_after(lambda: changes(memory="1Gi")) == begin
    assert revision_after(lambda: made.put(info(node("e", gpu="1")))) == begin
    relabelled = revision_after(lambda: changes(labels={HOST: "other"}))
    assert relabelled != begin
    gone = revision_after(lambda: changes(gpu="1"))
    assert gone != relabelled
    assert revision_after(lambda: made.drop("c")) != gone


templates = st.sampled_from(
    [
        {"zone": "x"},
        {"zone": "y"},
        {"zone": "x", "rack": "1"},
        {"zone": "x", "rack": "2"},
        {"zone": "x", "rack": "3"},
        {"serial": "1", "zone": "y"},
        {"serial": "2", "zone": "y"},
        {"serial": "3", "zone": "y"},
    ]
)
changes = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"),
        templates,
        st.integers(0, 9).map(bool),
        st.sampled_from(["0", "0", "1"]),
        st.integers(0, 7).map(bool),
    ),
    min_size=10,
    max_size=40,
)
few = st.none() | st.frozensets(st.sampled_from(["a", "b", "x", "1", "2"]))
reading = st.builds(
    Reads,
    st.dictionaries(st.sampled_from(["zone", HOST, "rack", "serial", "none"]), few),
    st.frozensets(st.sampled_from("abc")),
)


@given(changes, reading)
def test_each_node_is_in_one_group_with_nodes_that_are_read_alike(made_changes, reads):
    made, known, seen = NodeKinds(FEW), {}, {}
    for name, labels, schedulable, gpus, stays in made_changes:
        before, version = groups(made, reads), made.version
        if stays:
            plain = node(name, labels=labels, unschedulable=not schedulable, gpu=gpus)
            there = known.setdefault(name, NodeInfo(name))
            there.set_node(convert("Node", plain))
            made.put(there)
        else:
            known.pop(name, None)
            made.drop(name)
        assert version != made.version or before == groups(made, reads)
        assert sorted(it.name for nodes in groups(made, reads) for it in nodes) == sorted(known)
        for kind in made:
            now = [
                [(it.name, _read(it, reads)) for it in nodes] for nodes in made.alike(kind, reads)
            ]
            assert seen.setdefault(kind.revision, now) == now
            for nodes in now:
                assert len({read for _, read in nodes}) == 1
                assert nodes == sorted(nodes)


def _read(there, reads):
    """Return what static rules read of a node."""
    return (
        there.node.spec.unschedulable,
        there.allocatable.get("nvidia.com/gpu"),
        there.name if there.name in reads.names else "",
        tuple(
            (value := there.labels.get(key)) is not None
            and (value if values is None or value in values else "other")
            for key, values in sorted(reads.labels.items())
        ),
    )


def test_a_key_is_individual_once_it_has_too_many_values():
    values = LabelValues(most=2)
    assert not values.add({"host": "a", "zone": "x"})
    assert not values.add({"host": "b", "zone": "x"})
    assert values.add({"host": "c", "zone": "y"})
    assert not values.add({"host": "d", "zone": "y"})
    assert values.individual == {"host"}


def test_values_that_are_gone_do_not_count():
    values = LabelValues(most=2)
    for version in range(10):
        assert not values.add({"version": str(version)})
        values.discard({"version": str(version)})


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("12345")), max_size=20))
def test_nothing_is_left_once_all_nodes_are_gone(every):
    values = LabelValues(most=2)
    for labels in every:
        values.add(labels)
    for labels in every:
        values.discard(labels)
    assert (values.individual, +values._nodes, values._values) == (set(), {}, {})
