"""Which pending pods count, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuspawner.reservations.pending_pods import PATIENCE_SECONDS, PendingPods
from gpuspawner.scheduling.verdicts import Subject, Verdicts
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod

pytestmark = pytest.mark.usefixtures("clock")


def pending(view):
    return PendingPods(view.state, Verdicts(view.state))


@pytest.mark.parametrize(
    ("plain", "counted"),
    [
        (pod("x", 1), 1),
        (pod("x", 4), 0),
        (pod("x", 1, schedulingGates=[{"name": "kueue"}]), 0),
        (pod("x", 1, schedulerName="volcano"), 0),
        ({**pod("x", 1), "metadata": {"name": "x", "deletionTimestamp": "2026-01-01"}}, 0),
        (pod("x", 1, on="n"), 0),
    ],
    ids=["fits", "no room", "gated", "other scheduler", "terminating", "bound"],
)
def test_only_pods_that_the_scheduler_may_bind_now_count(plain, counted) -> None:
    view = StillView(("Node", node("n", 2)), ("Pod", plain))

    assert len(pending(view).demands(())) == counted


def test_a_nominated_pod_counts_on_its_node_until_it_is_bound(clock) -> None:
    """Whether it fits there now, or once others have ended."""
    nominated = {**pod("x", 2), "status": {"nominatedNodeName": "n"}}
    ending = ("Pod", pod("ending", 2, on="n"))
    unbound = pending(StillView(("Node", node("n", 2)), ending, ("Pod", nominated)))

    for _ in range(2):
        [demand] = unbound.demands(())
        assert (demand.requests[GPU], demand.nodes) == (2, {"n"})
        clock.now += PATIENCE_SECONDS + 1
    assert unbound.demands({(NAMESPACE, "x")}) == []


def test_pods_with_a_reservation_are_not_pending_pods() -> None:
    view = StillView(("Node", node("n", 2)), ("Pod", pod("mine")), ("Pod", pod("theirs")))

    assert len(pending(view).demands({(NAMESPACE, "mine")})) == 1


def test_a_pod_that_fits_but_stays_unbound_counts_only_for_a_while(clock) -> None:
    unbound = pending(StillView(("Node", node("n", 2)), ("Pod", pod("stuck"))))
    assert len(unbound.demands(())) == 1

    clock.now += PATIENCE_SECONDS
    assert len(unbound.demands(())) == 1
    clock.now += 1
    assert unbound.demands(()) == []


def test_a_pod_that_fits_again_counts_again(clock) -> None:
    view = StillView(("Node", node("n", 1)), ("Pod", pod("stuck")))
    unbound = pending(view)
    unbound.demands(())

    clock.now += PATIENCE_SECONDS + 1
    view.put("Pod", pod("other", on="n"))
    assert unbound.demands(()) == []
    view.remove_pod("other")

    assert len(unbound.demands(())) == 1


@pytest.mark.parametrize(("priority", "counted"), [(0, 0), (1, 1), (None, 0)])
def test_a_pod_for_which_the_scheduler_would_end_others_counts(priority, counted) -> None:
    running = pod("x", 1, on="n", priority=0)
    view = StillView(("Node", node("n", 1)), ("Pod", running), ("Pod", pod("y", priority=priority)))

    assert len(pending(view).demands(())) == counted


@pytest.mark.parametrize("priority", [0, None])
def test_a_crowd_that_no_node_has_enough_left_for_costs_no_verdict(priority, monkeypatch) -> None:
    """A batch system may have thousands, and each start asks whenever the cluster changes."""
    crowd = [
        ("Pod", pod(name, gpus, priority=priority)) for name, gpus in (("x", 2), ("y", 3), ("z", 1))
    ]
    view = StillView(("Node", node("n", 2)), ("Pod", pod("one", 1, on="n", priority=0)), *crowd)
    verdicts, judged = Verdicts(view.state), []
    demand = verdicts.demand
    monkeypatch.setattr(verdicts, "demand", lambda it: judged.append(it) or demand(it))
    unbound = PendingPods(view.state, verdicts)

    assert [len(unbound.demands(())) for _ in range(3)] == [1, 1, 1]
    assert [it.pod.metadata.name for it in judged] == ["z"]
    view.remove_pod("one")
    assert len(unbound.demands(())) == 2


CLASSES = [
    {"priority": -1},
    {"priority": 0},
    {"priority": 7},
    {"priority": 7, "preemptionPolicy": "Never"},
    {"priorityClassName": "high"},
    {"priorityClassName": "system-node-critical"},
    {},
]
"""How pods may come by their priorities, before and after admission."""
HIGH = ("PriorityClass", {"metadata": {"name": "high"}, "value": 100})
pods = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(CLASSES)), max_size=6)


@example([1], [(1, {"priority": -1})], [(1, {"priorityClassName": "high"})], ())
@example([1], [(1, {"priority": 0})], [(1, {})], ("PriorityClass",))
@given(
    st.lists(st.integers(0, 4), max_size=3),
    pods,
    pods,
    st.sampled_from([(), ("PriorityClass",)]),
)
@settings(max_examples=60, deadline=None)
def test_each_pod_that_has_a_verdict_to_fit_counts(sizes, running, waiting, unread) -> None:
    """Even on a node with too many pods: the scheduler may end those of lower priority."""
    nodes = [("Node", node(f"n{number}", gpus)) for number, gpus in enumerate(sizes)]
    there = [
        ("Pod", pod(f"r{number}", gpus, on=f"n{number % 3}", **fields))
        for number, (gpus, fields) in enumerate(running)
    ]
    others = [
        ("Pod", pod(f"w{number}", gpus, **fields)) for number, (gpus, fields) in enumerate(waiting)
    ]
    state = StillView(*nodes, HIGH, *there, *others).state
    for kind in unread:
        state.mark_unknown(kind)

    demands = [Verdicts(state).demand(Subject(it)) for it in state.unbound_pods.values()]

    assert PendingPods(state, Verdicts(state)).demands(()) == [it for it in demands if it]
