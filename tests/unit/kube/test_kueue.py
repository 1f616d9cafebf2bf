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


@pytest.mark.parametrize(
    ("gates", "others", "is_kueue_s"),
    [
        (GATES, [], True),
        ([*GATES, {"name": "mine"}], ["mine"], True),
        ([{"name": "mine"}], ["mine"], False),
    ],
    ids=["Kueue's", "both", "others'"],
)
def test_kueue_s_gates_are_opened_and_others_stay(gates, others, is_kueue_s) -> None:
    gated = pod(schedulingGates=gates)

    assert is_gated(gated.spec.scheduling_gates) is is_kueue_s
    assert [it.name for it in without_gates(gated).spec.scheduling_gates or ()] == others
    assert queue_of(gated) == ""


def test_a_pod_gets_the_tolerations_of_its_flavors() -> None:
    own, both = ({"key": it, "operator": "Exists"} for it in ("own", "gpu"))
    objects = known(flavor("t4", nodeLabels={"gpu": "t4"}, tolerations=[own, both]))

    made = tolerating(pod(tolerations=[own]), objects.every(ResourceFlavor))

    assert made == pod(tolerations=[own, both])


ADMISSION = "kueue.x-k8s.io/admission"
MANAGED = {"labels": {"kueue.x-k8s.io/managed": "true"}}
DUE = "Preempted to accommodate a workload (UID: 5b92, JobUID: 0ea0) due to "


EVICTED = {
    "WorkloadEvictedDueToPreempted": [
        (f"{DUE}prioritization in the ClusterQueue; preemptor path: /team", Kind.QUEUE_PREEMPTED),
        (f"{DUE}reclamation within the cohort; preemptor path: /all/b", Kind.QUEUE_RECLAIMED),
        (f"{DUE}Fair Sharing within the cohort; preemptor path: /all/b", Kind.QUEUE_RECLAIMED),
    ],
    "WorkloadEvictedDueToClusterQueueStopped": [
        ("The ClusterQueue is stopped", Kind.QUEUE_STOPPED)
    ],
    "WorkloadEvictedDueToLocalQueueStopped": [("", Kind.QUEUE_STOPPED)],
    "WorkloadEvictedDueToPodsReadyTimeout": [("", Kind.QUEUE_EVICTED)],
    "WorkloadDeleted": [("Workload is deleted", Kind.QUEUE_EVICTED)],
    "": [("", Kind.QUEUE_EVICTED)],
}


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [(reason, *it) for reason, told in EVICTED.items() for it in told],
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
    ids=["held back", "it has left the queue at an unknown time", "others' gates are no queue"],
)
def test_nobody_looks_for_a_node_while_kueue_holds_a_pod_back(fields, expected) -> None:
    found = stages(start(**fields), ())

    assert [(it.step, it.since and it.since.second) for it in found] == expected
