import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, evaluate
from tests.unit.makers.objects import answer, cluster, node, pod

ONE = {"gpu": "1"}


def old(name="old", place="a", priority=0, **fields):
    return pod(name, node=place, requests=ONE, priority=priority, **fields)


def test_a_pod_can_preempt_pods_of_lower_priority():
    verdict = answer(pod(requests=ONE, priority=1), node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
    assert verdict.preemption_node == "a"
    assert verdict.condition_message == verdict.message


def test_the_first_node_by_name_is_chosen_whichever_has_changed_last():
    asks = pod(requests=ONE, priority=1)
    state = cluster(node("b", gpu="1"), node("a", gpu="1"), pods=[old("p", "a"), old("q", "b")])
    assert evaluate(state, asks).preemption_node == "a"
    state.put(convert("Node", node("a", gpu="1", cpu="9")))
    assert evaluate(state, asks).preemption_node == "a"


def test_without_priority_classes_the_verdict_is_unknown_if_preemption_could_help():
    taken = {"pods": [old()], "priorityClasses": None}
    assert answer(pod(requests=ONE), node(gpu="1"), **taken).outcome is Outcome.UNKNOWN
    assert answer(pod(requests=ONE, priority=0), node(gpu="1"), **taken).outcome is Outcome.BUSY


def test_without_priority_classes_a_refusal_stands_if_no_priority_could_help():
    two = pod(requests={"gpu": "2"})
    verdict = answer(two, node(gpu="1"), pods=[old()], priorityClasses=None)
    assert verdict.outcome is Outcome.IMPOSSIBLE
    system = answer(
        pod(requests=ONE),
        node(gpu="1"),
        pods=[old(priority=2_000_000_000)],
        priorityClasses=None,
    )
    assert system.outcome is Outcome.BUSY
    never = pod(requests=ONE, preemptionPolicy="Never")
    verdict = answer(never, node(gpu="1"), pods=[old()], priorityClasses=None)
    assert verdict.outcome is Outcome.BUSY


def test_without_priority_classes_the_verdict_beside_nominated_pods_is_unknown():
    kept = {"pods": [nominated(priority=-1)], "priorityClasses": None}
    assert answer(pod(requests=ONE), node(gpu="1"), **kept).outcome is Outcome.UNKNOWN
    assert answer(pod(requests=ONE, priority=0), node(gpu="1"), **kept).outcome is Outcome.FITS


def nominated(name="waits", priority=0, place="a", **fields):
    status = {"nominatedNodeName": place}
    return pod(name, requests=ONE, priority=priority, status=status, **fields)


def test_room_for_a_nominated_pod_is_free_once_that_is_gone_or_has_a_node():
    for gone in (None, old("waits", "b")):
        state = cluster(node("a", gpu="1"), node("b", gpu="1"), pods=[nominated()])
        assert evaluate(state, pod(requests=ONE)).feasible == ("b",)
        if gone is None:
            state.remove("Pod", "hub", "waits")
            assert evaluate(state, pod(requests=ONE)).feasible == ("a", "b")
        else:
            state.put(convert("Pod", gone))
            assert evaluate(state, pod(requests=ONE)).feasible == ("a",)


def test_room_for_nominated_pods_of_another_scheduler_is_free():
    waits = nominated(schedulerName="other")
    assert answer(pod(requests=ONE), node(gpu="1"), pods=[waits]).feasible == ("a",)


def test_room_for_the_pod_itself_is_free():
    state = cluster(node(gpu="1"), pods=[nominated()])
    assert evaluate(state, nominated()).feasible == ("a",)


@pytest.mark.parametrize(
    "unreadable",
    [
        pod("broken", node="a", priority=9, requests={"cpu": "much"}),
        {**pod("broken", node="a"), "status": 5},
    ],
)
def test_preemption_beside_an_undecodable_pod_is_uncertain(unreadable):
    pods = [old(), unreadable]
    request = pod(requests=ONE, priority=1)
    verdict = answer(request, node(gpu="1"), pods=pods)
    assert verdict.outcome is Outcome.UNKNOWN
    assert "broken" in verdict.unknown[0].detail
    beside = answer(request, node(gpu="1"), node("b", gpu="1"), pods=[*pods, old("x", "b")])
    assert beside.outcome is Outcome.FITS_AFTER_PREEMPTION
    assert beside.preemption_node == "b"
