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


@pytest.mark.parametrize("priority", [0, -1])
def test_a_pod_cannot_preempt_pods_of_the_same_or_higher_priority(priority):
    verdict = answer(pod(requests=ONE, priority=priority), node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.BUSY
    assert verdict.condition_message == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate,"
        " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_with_the_preemption_policy_never_does_not_preempt():
    request = pod(requests=ONE, priority=1, preemptionPolicy="Never")
    verdict = answer(request, node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.BUSY
    assert verdict.preemption == "not eligible due to preemptionPolicy=Never."


def test_preemption_does_not_help_against_static_rules():
    taint = {"key": "x", "effect": "NoSchedule"}
    verdict = answer(pod(requests=ONE, priority=1), node(gpu="1", taints=[taint]), pods=[old()])
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert verdict.preemption == (
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_the_message_says_why_preemption_does_not_free_enough():
    there = [old("low"), old("high", priority=5)]
    verdict = answer(pod(requests={"gpu": "2"}, priority=1), node(gpu="2"), pods=there)
    assert verdict.outcome is Outcome.BUSY
    assert verdict.preemption == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


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


@pytest.mark.parametrize(("priority", "fits"), [(1, False), (0, False), (-1, True)])
def test_room_for_nominated_pods_of_the_same_or_higher_priority_is_not_free(priority, fits):
    verdict = answer(pod(requests=ONE), node(gpu="1"), pods=[nominated(priority=priority)])
    assert bool(verdict.feasible) is fits


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


def test_a_pod_whose_victims_are_terminating_does_not_preempt_again():
    gone = old(
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            ]
        },
    )
    verdict = answer(nominated(priority=1), node(gpu="1"), pods=[gone])
    assert "terminating pod on the nominated node" in verdict.condition_message


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
