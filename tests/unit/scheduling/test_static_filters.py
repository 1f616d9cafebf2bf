"""Static rules, judged once for each kind of nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_kinds import NodeKinds
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.objects import named, node, pod, required

HOST = "kubernetes.io/hostname"
TOLERATED = {"key": "gpu", "operator": "Exists"}


def selecting(key, operator, *values):
    return required({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})


PODS = [
    convert("Pod", plain)
    for plain in (
        pod(),
        pod(requests={"gpu": "1"}, tolerations=[TOLERATED]),
        pod(nodeSelector={"zone": "x"}),
        pod(nodeSelector={HOST: "a"}),
        pod(nodeSelector={HOST: "a", "rack": "1"}),
        pod(nodeName="b"),
        pod(**selecting("zone", "NotIn", "x")),
        pod(**selecting(HOST, "NotIn", "a", "c"), tolerations=[TOLERATED]),
        pod(**selecting(HOST, "Exists")),
        pod(**selecting("rack", "DoesNotExist")),
        pod(**selecting("rank", "Gt", "2"), tolerations=[TOLERATED]),
        pod(**selecting("rank", "Lt", "3")),
        pod(**required(named("a"), {"matchExpressions": [{"key": "zone", "operator": "Exists"}]})),
        pod(
            **required(
                {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["b"]}]}
            )
        ),
        pod(nodeSelector={"rank": "1"}, **selecting("rank", "NotIn", "2")),
    )
]

LABELS = st.fixed_dictionaries(
    {},
    optional={
        "zone": st.sampled_from("xy"),
        "rank": st.sampled_from(["", "1", "2", "3", "4"]),
        "rack": st.sampled_from("123"),
    },
)
KINDS = st.lists(
    st.tuples(
        LABELS,
        st.booleans(),
        st.booleans(),
        st.sampled_from(["0", "1", "2", "not a number"]),
        st.sampled_from(["1", "2"]),
    ),
    min_size=1,
    max_size=3,
)
CHANGES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.integers(0, 5)), max_size=12
)


@given(KINDS, CHANGES)
def test_a_result_by_kinds_of_nodes_equals_one_node_by_node(kinds, made_changes):
    """Six nodes of few kinds change their kinds, and seldom go."""
    state = ClusterState()
    state.kinds = state._places.kinds = NodeKinds(most_values=2)
    begin = [(name, at, 5) for at, name in enumerate("abcdef")]
    for at, (name, kind, lasts) in enumerate([*begin, *made_changes]):
        if lasts:
            labels, cordoned, tainted, gpus, most = kinds[kind % len(kinds)]
            taints = [{"key": "gpu", "effect": "NoSchedule"}] if tainted else []
            capacity = {"nvidia.com/gpu": most}
            plain = node(name, labels, taints, cordoned, capacity, gpu=gpus)
            state.put(convert("Node", plain))
        else:
            state.remove("Node", "", name)
        if at >= len(begin) - 1:
            for it in PODS:
                _equals_node_by_node(state, it)


def _equals_node_by_node(state, it):
    filters = Filters(state, it)
    found, nodes = filters.screened(), sorted(state.nodes.values(), key=lambda node: node.name)
    failures = {node.name: filters.fixed_failure(node) for node in nodes}
    assert found.failing == {name: (why,) for name, why in failures.items() if why}
    passing = [node for node in nodes if not failures[node.name]]
    assert list(found.passing) == passing
    assert found.passing_of(state.nodes) == passing
    wanted = dict(filters.asked).get("nvidia.com/gpu", 0)
    has = {node.name for node in passing if node.allocatable.get("nvidia.com/gpu", 0) >= wanted}
    assert list(found.able) == [node for node in passing if node.name in has or node.problem]
    assert list(found.weak) == [
        node
        for node in passing
        if node.name not in has and node.capacity.get("nvidia.com/gpu", 0) >= wanted
    ]
    assert sum(found.reasons.values()) == len(nodes) - len(passing)
    assert sum(map(len, found.excluded.values())) == len(nodes) - len(passing)


@pytest.mark.parametrize("it", range(len(PODS)))
def test_twins_that_differ_in_one_value_are_told_apart_by_those_who_name_it(it):
    """Two nodes of one kind for each value that a pod could name, and one without the label."""
    state = ClusterState()
    state.kinds = state._places.kinds = NodeKinds(most_values=2)
    for key, values in ((HOST, "abcdef"), ("rank", "0123456"), ("rack", "1234")):
        for value in values:
            for twin in "12":
                plain = node(f"{key[-4:]}-{value}-{twin}", gpu="1")
                plain["metadata"]["labels"] = {key: value, "zone": "x"}
                state.put(convert("Node", plain))
    for name in "ab":
        state.put(convert("Node", {**node(name, gpu="1"), "metadata": {"name": name}}))
    assert len(list(state.kinds)) == 2
    _equals_node_by_node(state, PODS[it])


def test_a_label_that_becomes_individual_later_does_not_mix_up_two_that_were():
    """Both have the same values; a pod wants some of one label and refuses those of the other."""
    state = ClusterState()
    state.kinds = state._places.kinds = NodeKinds(most_values=2)
    asks = required(
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["z"]},
                {"key": HOST, "operator": "In", "values": ["v5", "v1"]},
                {"key": "rack", "operator": "NotIn", "values": ["v5", "v1"]},
            ]
        }
    )
    for number in range(8):
        labels = {HOST: f"v{number}", "rack": f"v{number + 1}", "zone": "z"}
        state.put(convert("Node", node(f"n{number}", labels)))
    _equals_node_by_node(state, convert("Pod", pod(**asks)))
    for number in range(40):
        state.put(convert("Node", node(f"m{number}", {f"serial-{number % 8}": f"s{number}"})))
        _equals_node_by_node(state, convert("Pod", pod(**asks)))


def test_each_kind_is_judged_once_and_only_new_kinds_are_judged_later():
    state = ClusterState()
    for at in range(200):
        plain = node(f"n{at}", labels={"zone": "xy"[at % 2]}, memory=f"{64 + at}Gi")
        state.put(convert("Node", plain))
    judged = []
    filters = Filters(state, convert("Pod", pod(nodeSelector={"zone": "x"})))
    rules = filters._static_rules()
    counted = rules._replace(judge=lambda node: judged.append(node.name) or rules.judge(node))
    state.screening.screened(b"", state.kinds, lambda: counted)
    assert len(judged) == 2
    state.put(convert("Node", node("new", labels={"zone": "x"}, gpu="1")))
    assert "new" in {it.name for it in state.screening.screened(b"", state.kinds, None).passing}
    assert judged[2:] == ["new"]
