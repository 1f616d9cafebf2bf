"""Which nodes have some of a device left."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.evaluate import evaluate, fits_somewhere
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome
from tests.unit.makers.worlds import GPU, NAMESPACE, node, pod

NODES, PODS = ("a", "b", "c"), ("p", "q", "r", "s")
changes = st.lists(
    st.one_of(
        st.tuples(st.just("Node"), st.sampled_from(NODES), st.integers(0, 3)),
        st.tuples(
            st.just("Pod"), st.sampled_from(PODS), st.integers(0, 2), st.sampled_from(["", *NODES])
        ),
        st.tuples(st.just("no Node"), st.sampled_from(NODES)),
        st.tuples(st.just("no Pod"), st.sampled_from(PODS)),
    ),
    max_size=30,
)


def make(state: ClusterState, change: tuple[Any, ...]) -> None:
    match change:
        case "Node", name, gpus:
            state.put(convert("Node", node(name, gpus)))
        case "Pod", name, gpus, on:
            state.put(convert("Pod", pod(name, gpus, on=on)))
        case gone, name:
            kind = gone.removeprefix("no ")
            state.remove(kind, NAMESPACE if kind == "Pod" else "", name)


@given(changes)
def test_each_node_that_has_some_left_is_known_whatever_happens(them: list[Any]) -> None:
    state = ClusterState.from_objects(nodes=[], pods=[])
    for change in them:
        make(state, change)

        left = {it.name for it in state.nodes.values() if it.free[GPU] > 0}
        assert left <= state.spare.on(GPU) <= state.nodes.keys()
        for gpus in (1, 2):
            wanted = pod("new", gpus)
            fits = evaluate(state, wanted).outcome is Outcome.FITS
            assert fits_somewhere(state, wanted) == fits


def test_a_node_that_goes_before_its_pods_is_forgotten() -> None:
    state = ClusterState.from_objects(nodes=[node("n", 1)], pods=[pod("x", 1, on="n")])
    state.remove("Node", "", "n")
    state.remove("Pod", NAMESPACE, "x")
    assert not state.spare.on(GPU)

    state.put(convert("Node", node("n", 1)))
    assert state.spare.on(GPU) == {"n"}


def test_a_node_whose_amounts_nobody_can_read_may_have_some() -> None:
    odd: Any = node("odd", 1)
    odd["status"]["allocatable"][GPU] = "many"
    state = ClusterState.from_objects(nodes=[odd], pods=[])
    assert state.spare.on(GPU) == {"odd"}
    assert evaluate(state, pod("new", 1)).outcome is Outcome.UNKNOWN
    assert not fits_somewhere(state, pod("new", 1))

    state.put(convert("Node", node("odd", 0)))
    assert not state.spare.on(GPU)
