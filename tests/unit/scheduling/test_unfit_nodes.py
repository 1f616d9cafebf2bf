"""Nodes that fail after the static rules."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.failures import resolvable
from gpuspawner.scheduling.node_resources_fit import lacking, wanted
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.unfit_nodes import Lacking
from tests.unit.makers.objects import node, pod


def test_nodes_that_lack_the_same_share_their_failures():
    state = ClusterState()
    for name in "abcd":
        state.put(
            convert("Node", node(name, gpu="1", memory="1Gi", pods="0" if name > "b" else "1"))
        )
    for asked in ({"memory": 2**34}, {"nvidia.com/gpu": 2, "memory": 2**34, "cpu": 9000}):
        kept = Lacking(wanted(asked))
        kept.refresh(state.nodes.values())
        assert kept.failures["a"] is kept.failures["b"]
        assert kept.failures["c"] is kept.failures["d"]


changes = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from("pqrst"),
        st.sampled_from(["0", "1", "2"]),
        st.sampled_from(["0", "3", "7"]),
        st.booleans(),
    ),
    max_size=25,
)
asks = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu", "memory"]), st.sampled_from([1, 2, 2000, 2**34])
)


@given(changes, asks)
def test_what_is_kept_equals_what_each_node_lacks_now(made_changes, requests):
    state = ClusterState()
    for name, gpus in (("a", "1"), ("b", "2"), ("c", "0")):
        state.put(convert("Node", node(name, gpu=gpus, pods="2")))
    asked = wanted(requests)
    kept = Lacking(asked)
    for name, other, gpus, cpu, goes in made_changes:
        if goes:
            state.remove("Pod", "hub", other)
        else:
            plain = pod(other, node=name, requests={"gpu": gpus, "cpu": cpu})
            state.put(convert("Pod", plain))
        kept.refresh(state.nodes.values())
        now = {it.name: lacking(asked, it.free, it.allocatable) for it in state.nodes.values()}
        assert kept.failures == {name: facts for name, facts in now.items() if facts}
        assert +kept.reasons == Counter(fact.reason for facts in now.values() for fact in facts)
        assert set(kept.freeable) == {name for name, it in now.items() if it and resolvable(it)}
