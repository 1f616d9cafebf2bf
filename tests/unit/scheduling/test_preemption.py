import pytest

from gpuspawner.scheduling import Outcome, evaluate
from tests.unit.scheduling.objects import answer, cluster, node, pod

ONE = {"gpu": "1"}


def old(name="old", place="a", priority=0, **fields):
    return pod(name, node=place, requests=ONE, priority=priority, **fields)


def test_pods_of_lower_priority_make_room():
    verdict = answer(pod(requests=ONE, priority=1), node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
    assert verdict.preemption_node == "a"
    assert verdict.condition_message == verdict.message


@pytest.mark.parametrize("priority", [0, -1])
def test_pods_of_the_same_or_higher_priority_do_not(priority):
    verdict = answer(pod(requests=ONE, priority=priority), node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.BUSY
    assert verdict.condition_message == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate,"
        " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_that_must_not_preempt_does_not():
    request = pod(requests=ONE, priority=1, preemptionPolicy="Never")
    verdict = answer(request, node(gpu="1"), pods=[old()])
    assert verdict.outcome is Outcome.BUSY
    assert verdict.preemption == "not eligible due to preemptionPolicy=Never."


def test_what_is_fixed_about_a_node_is_not_helped_by_preemption():
    taint = {"key": "x", "effect": "NoSchedule"}
    verdict = answer(pod(requests=ONE, priority=1), node(gpu="1", taints=[taint]), pods=[old()])
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert verdict.preemption == (
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_too_little_room_after_preemption_is_told_with_its_reason():
    there = [old("low"), old("high", priority=5)]
    verdict = answer(pod(requests={"gpu": "2"}, priority=1), node(gpu="2"), pods=there)
    assert verdict.outcome is Outcome.BUSY
    assert verdict.preemption == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_the_priority_class_counts_where_admission_has_not_been():
    request = pod(requests=ONE, priorityClassName="important")
    class_ = {"metadata": {"name": "important"}, "value": 10}
    given = {"pods": [old()]}
    verdict = answer(request, node(gpu="1"), priorityClasses=[class_], **given)
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION
    unknown = answer(request, node(gpu="1"), priorityClasses=None, **given)
    assert unknown.outcome is Outcome.UNKNOWN
    default = {"metadata": {"name": "d"}, "value": 10, "globalDefault": True}
    verdict = answer(pod(requests=ONE), node(gpu="1"), priorityClasses=[default], **given)
    assert verdict.outcome is Outcome.FITS_AFTER_PREEMPTION


def test_without_the_classes_the_default_priority_is_unknown_where_a_high_one_makes_room():
    taken = {"pods": [old()], "priorityClasses": None}
    assert answer(pod(requests=ONE), node(gpu="1"), **taken).outcome is Outcome.UNKNOWN
    assert answer(pod(requests=ONE, priority=0), node(gpu="1"), **taken).outcome is Outcome.BUSY


def test_without_the_classes_a_no_that_no_priority_turns_stays_a_no():
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


def test_without_the_classes_it_is_unknown_who_goes_before_a_pod_that_room_is_kept_for():
    kept = {"pods": [nominated(priority=-1)], "priorityClasses": None}
    assert answer(pod(requests=ONE), node(gpu="1"), **kept).outcome is Outcome.UNKNOWN
    assert answer(pod(requests=ONE, priority=0), node(gpu="1"), **kept).outcome is Outcome.FITS


def nominated(name="waits", priority=0, place="a", **fields):
    status = {"nominatedNodeName": place}
    return pod(name, requests=ONE, priority=priority, status=status, **fields)


@pytest.mark.parametrize(("priority", "fits"), [(1, False), (0, False), (-1, True)])
def test_room_kept_for_pods_of_the_same_or_higher_priority_is_not_free(priority, fits):
    verdict = answer(pod(requests=ONE), node(gpu="1"), pods=[nominated(priority=priority)])
    assert bool(verdict.feasible) is fits


def test_room_that_another_scheduler_keeps_is_free():
    waits = nominated(schedulerName="other")
    assert answer(pod(requests=ONE), node(gpu="1"), pods=[waits]).feasible == ("a",)


def test_room_kept_for_the_pod_itself_is_free():
    state = cluster(node(gpu="1"), pods=[nominated()])
    assert evaluate(state, nominated()).feasible == ("a",)


def test_a_pod_whose_victims_still_end_preempts_no_more():
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
        pod("odd", node="a", priority=9, requests={"cpu": "much"}),
        {**pod("odd", node="a"), "status": 5},
    ],
)
def test_where_a_pod_cannot_be_read_it_is_unknown_whether_room_can_be_made(unreadable):
    pods = [old(), unreadable]
    request = pod(requests=ONE, priority=1)
    verdict = answer(request, node(gpu="1"), pods=pods)
    assert verdict.outcome is Outcome.UNKNOWN
    assert "odd" in verdict.unknown[0].detail
    beside = answer(request, node(gpu="1"), node("b", gpu="1"), pods=[*pods, old("x", "b")])
    assert beside.outcome is Outcome.FITS_AFTER_PREEMPTION
    assert beside.preemption_node == "b"
