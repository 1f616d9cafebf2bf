"""Static rules, judged once for each kind of nodes."""

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_kinds import NodeKinds
from gpuspawner.scheduling.state import ClusterState
from tests.unit.scheduling.objects import node, pod
from tests.unit.scheduling.test_node_affinity import named, required

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
        pod(nodeName="b"),
        pod(**selecting("zone", "NotIn", "x")),
        pod(**selecting(HOST, "NotIn", "a", "c"), tolerations=[TOLERATED]),
        pod(**selecting(HOST, "Exists")),
        pod(**selecting("rank", "Gt", "2"), tolerations=[TOLERATED]),
        pod(**required(named("a"), {"matchExpressions": [{"key": "zone", "operator": "Exists"}]})),
    )
]

changes = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.fixed_dictionaries(
            {}, optional={"zone": st.sampled_from("xy"), "rank": st.sampled_from("12345")}
        ),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["0", "1", "2", "not a number"]),
        st.sampled_from(["1", "2"]),
        st.booleans(),
    ),
    max_size=25,
)


@given(changes)
def test_a_result_by_kinds_of_nodes_equals_one_node_by_node(made_changes):
    state = ClusterState()
    state._places.kinds = NodeKinds(most_values=2)
    for name, labels, cordoned, tainted, gpus, most, goes in made_changes:
        if goes:
            state.remove("Node", "", name)
        else:
            taints = [{"key": "gpu", "effect": "NoSchedule"}] if tainted else []
            capacity = {"nvidia.com/gpu": most}
            plain = node(name, labels, taints, cordoned, capacity, gpu=gpus)
            state.put(convert("Node", plain))
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
