"""What is seen and told of a start while Kueue holds its pod back."""

import pytest
from msgspec import structs

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.launch.observed_pod import Seen, with_workload
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.scheduling.rules import DEFAULT_RULES
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.kueue_worlds import GPU, flavor, known, pod, pool, queue, workload
from tests.unit.makers.launches import Launch

QUEUED = Stage(Step.QUEUED, (-2, 0))
SCHEDULING = Stage(Step.SCHEDULING, (-1, 0))
WAITING = Seen((QUEUED,), uid="uid-w")
TEAM = queue(), pool("team-a", {"nominalQuota": "2"}, used=2), flavor()
NO_MORE = "insufficient unused quota for nvidia.com/gpu in flavor t4, 1 more needed"
TOO_MUCH = (
    "insufficient quota for nvidia.com/gpu in flavor t4, previously considered podsets requests (0)"
    " + current podset request (3) > maximum capacity (2)"
)


def look(objects, seen=WAITING):
    return with_workload(seen, objects, pod(), DEFAULT_RULES)


def test_the_place_is_that_of_the_pod_s_own_workload():
    objects = known(*TEAM, workload("earlier"), workload("w", second=1, QuotaReserved=NO_MORE))

    assert look(objects).queue == PlaceInQueue("gpus", "team-a", 1, GPU, used=2, nominal=2)


def test_a_pod_that_no_one_holds_back_has_no_place():
    seen = structs.replace(WAITING, stages=(QUEUED, SCHEDULING))

    assert look(known(*TEAM, workload("w")), seen) == seen


def test_a_pod_that_has_quota_but_waits_for_an_admission_check_isnt_next_in_the_queue():
    assert look(known(*TEAM, workload("w", QuotaReserved=""))) == WAITING
    admitted = workload("w", QuotaReserved="", Admitted="")
    assert look(known(*TEAM, admitted)).queue is not None


def test_that_kueue_takes_no_notice_is_a_trouble_if_the_hub_sees_all_workloads():
    assert [it.kind for it in look(known(*TEAM)).troubles] == [Kind.QUEUE_SILENT]
    assert look(KueueObjects()) == WAITING


def test_a_workload_that_cant_be_read_may_be_that_of_the_pod():
    strange = {**workload("w"), "spec": {"queueName": "gpus", "priority": "high"}}

    assert look(known(*TEAM, strange)) == WAITING


OF_CLAIMS = "KueueDRAIntegration feature does not support use of resource claims"
NO_CLAIMS = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"


@pytest.mark.parametrize("said", [TOO_MUCH, OF_CLAIMS, NO_CLAIMS])
def test_what_kueue_can_never_give_ends_the_start(said):
    [trouble] = look(known(*TEAM, workload("w", QuotaReserved=said))).troubles

    assert (trouble.kind, trouble.is_final, trouble.text) == (Kind.QUEUE_NEVER, True, said)


REJECTED = "The workload is deactivated due to Admission check(s): gpus, were rejected"


@pytest.mark.parametrize(
    ("conditions", "active", "said"),
    [
        ({"QuotaReserved": REJECTED, "Evicted": ""}, False, REJECTED),
        ({"QuotaReserved": "The workload is deactivated"}, False, "The workload isn't active"),
        ({"QuotaReserved": "", "Admitted": "", "Finished": ""}, None, "conflict for nodeSelector"),
    ],
)
def test_a_workload_that_kueue_never_looks_at_again_ends_the_start(conditions, active, said):
    """Kueue leaves its pod gated, so the start would wait for ever, and read that it is next."""
    made = workload("w", **conditions)
    told = [
        {**it, "message": said} if it["type"] in ("Evicted", "Finished") else it
        for it in made["status"]["conditions"]
    ]
    put_away = {**made, "spec": {**made["spec"], "active": active}, "status": {"conditions": told}}

    seen = look(known(*TEAM, put_away))

    assert seen.queue is None
    assert [(it.kind, it.is_final, it.text) for it in seen.troubles] == [
        (Kind.QUEUE_EVICTED, True, said)
    ]


PREEMPTED = "Preempted to accommodate a workload (UID: u, JobUID: j) due to prioritization"
RECLAIMED = "Preempted to accommodate a workload (UID: u) due to reclamation within the cohort"


def evicted(reason, said, requeued):
    """A workload that lost its quota while an admission check ran."""
    made = workload("w", QuotaReserved=said)
    told = {"type": "Evicted", "status": "True", "reason": reason, "message": said}
    again = {"type": "Requeued", "status": requeued, "reason": reason, "message": said}
    return {**made, "status": {"conditions": [*made["status"]["conditions"], told, again]}}


@pytest.mark.parametrize(
    ("reason", "said", "kind"),
    [
        ("Preempted", PREEMPTED, Kind.QUEUE_PREEMPTED),
        ("Preempted", RECLAIMED, Kind.QUEUE_RECLAIMED),
        ("NodeFailures", "Workload was evicted as a node failed", Kind.QUEUE_EVICTED),
    ],
)
def test_a_workload_that_kueue_evicts_and_does_not_queue_again_ends_the_start(reason, said, kind):
    objects = known(*TEAM, evicted(reason, said, "False"))
    seen = look(objects)

    assert seen.queue is None
    assert [(it.kind, it.is_final, it.text) for it in seen.troubles] == [(kind, True, said)]
    assert objects.waiting_for("team-a") == 0


def test_a_workload_that_is_put_away_after_an_eviction_was_not_preempted():
    made = evicted("Preempted", PREEMPTED, "True")
    objects = known(*TEAM, {**made, "spec": {**made["spec"], "active": False}})

    assert [it.kind for it in look(objects).troubles] == [Kind.QUEUE_EVICTED]


@pytest.mark.parametrize(
    ("reason", "requeued"),
    [("Preempted", "True"), ("AdmissionCheck", "False"), ("PodsReadyTimeout", "False")],
)
def test_a_workload_that_kueue_queues_again_waits_on(reason, requeued):
    objects = known(*TEAM, evicted(reason, PREEMPTED, requeued))

    assert look(objects).queue == PlaceInQueue("gpus", "team-a", 0)
    assert objects.waiting_for("team-a") == 1


def at(ahead):
    return structs.replace(WAITING, queue=PlaceInQueue("gpus", "team-a", ahead))


def test_a_page_tells_each_place_once_and_nothing_of_a_wait_that_takes_no_time():
    launch = Launch()
    for ahead, after in ((2, 0), (2, 0.5), (2, 1), (2, 0.5), (0, 1)):
        launch.look(at(ahead), after)

    assert launch.page.texts == [
        "Your server waits in the queue gpus: 2 others are ahead of it.",
        "Your server is next in the queue gpus.",
    ]


def test_after_the_queue_the_page_goes_on_as_for_any_server():
    launch = Launch()
    launch.look(at(0))
    launch.look(at(0), after=2)
    launch.look(structs.replace(WAITING, stages=(QUEUED, SCHEDULING)), after=1)

    assert launch.page.texts[-1] == "Looking for a machine for your server."


def test_without_rights_a_page_still_says_that_the_server_waits_in_a_queue():
    launch = Launch()
    launch.look(WAITING)
    launch.look(WAITING, after=2)

    assert launch.page.texts == ["Your server waits in the cluster's queue."]
