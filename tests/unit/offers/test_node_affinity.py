"""The logic of node selector terms, compared with the scheduler's evaluation of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.meta import NodeSelector
from gpuspawner.kube.objects import convert
from gpuspawner.offers.node_affinity import (
    NEVER,
    both,
    from_labels,
    neither,
    off,
    rather_off,
    read,
    write,
)
from gpuspawner.offers.vendors import HOSTNAME
from gpuspawner.scheduling.evaluate import evaluate
from gpuspawner.scheduling.labels import compile_node_selector
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.worlds import node, pod

keys = st.sampled_from(["gpu", "zone", "size"])
values = st.sampled_from(["a", "b", "1", "2"])


def line(operator, some):
    return st.fixed_dictionaries({"key": keys, "operator": operator, "values": some})


expressions = (
    line(st.sampled_from(["In", "NotIn"]), st.lists(values, min_size=1, max_size=2))
    | st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(["Exists", "DoesNotExist"])})
    | line(st.sampled_from(["Gt", "Lt"]), st.sampled_from([["1"], ["2"]]))
)
fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from([["n1"], ["n2"]]),
    }
)
terms = st.lists(
    st.fixed_dictionaries(
        {}, optional={"matchExpressions": st.lists(expressions), "matchFields": st.lists(fields)}
    ),
    min_size=1,
    max_size=3,
)
nodes = st.tuples(st.dictionaries(keys, values), st.sampled_from(["n1", "n2"]))


def requirement(key, operator, *values):
    line = {"key": key, "operator": operator}
    return {"matchExpressions": [{**line, "values": list(values)} if values else line]}


def matches(plain, node):
    labels, name = node
    selector = msgspec.convert({"nodeSelectorTerms": plain}, NodeSelector)
    return any(term.matches(labels, name) for term in compile_node_selector(selector))


@given(terms, terms, nodes)
def test_both_matches_the_nodes_that_match_each_list(one, other, node):
    made = write(both(read(one), read(other)))

    assert matches(made, node) == (matches(one, node) and matches(other, node))


@given(terms, terms)
def test_applying_both_twice_changes_nothing_more(one, other):
    made = both(read(one), read(other))

    assert both(made, read(other)) == made


def is_compared(plain, labels):
    """Whether Gt or Lt compares a label that isn't an integer."""
    return any(
        line["operator"] in ("Gt", "Lt") and labels.get(line["key"], "1") not in "12"
        for term in plain
        for line in term.get("matchExpressions", ())
    )


@given(terms.filter(lambda plain: any(read(plain))), nodes)
def test_neither_matches_the_nodes_that_do_not_match_the_terms(plain, node):
    made = write(neither(read(plain)))

    assert not (matches(made, node) and matches(plain, node))
    if not is_compared(plain, node[0]):
        assert matches(made, node) != matches(plain, node)


def test_a_comparison_is_negated_at_its_bound():
    more, less = ([requirement("size", operator, "2")] for operator in ("Gt", "Lt"))

    assert write(neither(read(more))) == [
        requirement("size", "Lt", "3"),
        requirement("size", "DoesNotExist"),
    ]
    assert write(neither(read(less)))[0] == requirement("size", "Gt", "1")


@given(st.dictionaries(keys, values, min_size=1), nodes)
def test_labels_become_one_term(labels, node):
    assert matches(write(from_labels(labels)), node) == (labels.items() <= node[0].items())


def test_terms_that_never_match_still_never_match():
    assert both(read([{}]), read([{"matchFields": []}])) == NEVER
    assert write(NEVER) == [{}]


def test_a_longer_term_that_a_shorter_one_covers_is_dropped():
    present = {"key": "gpu", "operator": "Exists"}
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    covered = [{"matchExpressions": [present]}, {"matchExpressions": [zone, present]}]

    assert write(both(read(covered), read(covered))) == [{"matchExpressions": [present]}]


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OWN = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100"]}]},
            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["t4"]}]},
        ]
    },
    PREFERRED: [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    ],
}


def named(name):
    made = node(name, 2)
    made["metadata"]["labels"][HOSTNAME] = f"host-{name}"
    return made


def feasible(made):
    state = ClusterState.from_objects(nodes=[named(name) for name in "abc"], pods=[])
    state.mark_known("DeviceClass")
    return set(evaluate(state, convert("Pod", made)).feasible)


@pytest.mark.parametrize("affinity", [{}, {"nodeAffinity": OWN}])
def test_a_pod_kept_off_nodes_fits_on_the_others_only(affinity):
    given = pod("p", 1, affinity=affinity)
    before = repr(given)

    assert feasible(given) == {"a", "b", "c"}
    assert feasible(off(given, ["host-a", "host-b"])) == {"c"}
    assert repr(given) == before


@pytest.mark.parametrize("affinity", [None, {"nodeAffinity": None}, {"nodeAffinity": OWN}])
def test_a_preference_forbids_no_node_and_replaces_nothing(affinity):
    given = pod("p", 1, affinity=affinity)
    made = rather_off(given, ["host-a"])

    assert feasible(made) == {"a", "b", "c"}
    own = (affinity or {}).get("nodeAffinity") or {}
    made_node = made["spec"]["affinity"]["nodeAffinity"]
    *others, last = made_node[PREFERRED]
    assert others == own.get(PREFERRED, [])
    assert {**made_node, PREFERRED: None} == {**own, PREFERRED: None}
    avoided = {"key": HOSTNAME, "operator": "NotIn", "values": ["host-a"]}
    assert last == {"weight": 100, "preference": {"matchExpressions": [avoided]}}
