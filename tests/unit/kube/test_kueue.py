"""What a pod says to Kueue, and what Kueue makes of it."""

from __future__ import annotations

import pytest

from gpuspawner.kube.kueue import ResourceFlavor, is_gated, queue_of, tolerating, without_gates
from gpuspawner.troubles.ending import ending_of, utc_now
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.steps import Step, stages
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.kueue_worlds import flavor, known, pod
from tests.unit.makers.starts import at, start

GATES = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]


def test_kueue_s_gates_are_opened_and_others_stay() -> None:
    gated = pod(schedulingGates=[*GATES, {"name": "example.com/mine"}])

    assert is_gated(gated.spec.scheduling_gates)
    assert [it.name for it in without_gates(gated).spec.scheduling_gates or ()] == [
        "example.com/mine"
    ]
    assert without_gates(pod(schedulingGates=GATES)) == pod()


def test_gates_of_others_hold_a_pod_back_from_nothing_of_kueue_s() -> None:
    gated = pod(schedulingGates=[{"name": "example.com/mine"}])

    assert not is_gated(gated.spec.scheduling_gates)
    assert without_gates(gated) == gated
    assert queue_of(gated) == ""


def test_a_pod_gets_the_tolerations_of_its_flavors() -> None:
    own, both = ({"key": it, "operator": "Exists"} for it in ("own", "gpu"))
    objects = known(flavor("t4", nodeLabels={"gpu": "t4"}, tolerations=[own, both]))

    made = tolerating(pod(tolerations=[own]), objects.every(ResourceFlavor))

    assert made == pod(tolerations=[own, both])


ADMISSION = "kueue.x-k8s.io/admission"
MANAGED = {"labels": {"kueue.x-k8s.io/managed": "true"}}
DUE = "Preempted to accommodate a workload (UID: 5b92, JobUID: 0ea0) due to "


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        (
            "WorkloadEvictedDueToPreempted",
            f"{DUE}prioritization in the ClusterQueue; preemptor path: /team",
            Kind.QUEUE_PREEMPTED,
        ),
        (
            "WorkloadEvictedDueToPreempted",
            f"{DUE}reclamation within the cohort; preemptor path: /all/b",
            Kind.QUEUE_RECLAIMED,
        ),
        (
            "WorkloadEvictedDueToPreempted",
            f"{DUE}Fair Sharing within the cohort; preemptor path: /all/b",
            Kind.QUEUE_RECLAIMED,
        ),
        (
            "WorkloadEvictedDueToClusterQueueStopped",
            "The ClusterQueue is stopped",
            Kind.QUEUE_STOPPED,
        ),
        ("WorkloadEvictedDueToLocalQueueStopped", "", Kind.QUEUE_STOPPED),
        ("WorkloadEvictedDueToPodsReadyTimeout", "", Kind.QUEUE_EVICTED),
        ("WorkloadDeleted", "Workload is deleted", Kind.QUEUE_EVICTED),
        ("", "", Kind.QUEUE_EVICTED),
    ],
)
def test_the_pod_itself_says_why_kueue_ends_it(reason: str, message: str, kind: Kind) -> None:
    condition = {
        "type": "TerminationTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(5),
    }
    deleted = {"deletionTimestamp": at(35)}
    pod = start(node="n", phase="Running", conditions=[condition], metadata=deleted)

    first = troubles(pod, ())[0]
    ending = ending_of(pod, utc_now())

    assert (first.kind, first.is_final) == (kind, True)
    assert first.text == (message or reason)
    assert ending.kind is kind


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"metadata": MANAGED, "gates": [ADMISSION]}, [(Step.QUEUED, 0)]),
        ({"metadata": MANAGED}, [(Step.QUEUED, 0), (Step.SCHEDULING, None)]),
        ({"gates": ["example.com/mine"]}, [(Step.SCHEDULING, 0)]),
    ],
    ids=[
        "Kueue holds it back",
        "it has left the queue at an unknown time",
        "gates of others are no queue",
    ],
)
def test_nobody_looks_for_a_node_while_kueue_holds_a_pod_back(fields, expected) -> None:
    found = stages(start(**fields), ())

    assert [(it.step, it.since and it.since.second) for it in found] == expected
