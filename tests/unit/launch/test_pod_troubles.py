"""What goes wrong with a whole pod and its node, from the pod and its events together."""

from __future__ import annotations

import pytest

from gpuspawner.launch.trouble import About, Kind
from gpuspawner.launch.troubles import troubles
from tests.unit.launch.found import RUNS, kinds, only
from tests.unit.launch.starts import NOTEBOOK, at, condition, ended, event, start, warning


def test_a_device_gone_at_admission_ends_the_start() -> None:
    text = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
        " nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
    )
    pod = start(phase="Failed", reason="UnexpectedAdmissionError", message=text, node="gpu-1")
    refused = warning("UnexpectedAdmissionError", text.removeprefix("Pod was rejected: "), 3)
    trouble = only(troubles(pod, [refused]))

    assert (trouble.kind, trouble.is_final) == (Kind.DEVICE_TAKEN, True)
    assert trouble.about.resource == "nvidia.com/gpu"
    assert trouble.texts == (refused.message, text)


def test_a_device_that_breaks_is_told_of_its_container() -> None:
    device = {"resourceID": "GPU-2", "health": "Unhealthy"}
    broken = [{"name": "nvidia.com/gpu", "resources": [device]}]
    pod = start(node="gpu-1", notebook={**RUNS, "allocatedResourcesStatus": broken})
    trouble = only(troubles(pod, []))

    assert (trouble.kind, trouble.is_over, trouble.is_final) == (Kind.DEVICE_BROKEN, False, False)
    assert trouble.about == About(container=NOTEBOOK, resource="nvidia.com/gpu", name="GPU-2")


def test_a_preempted_pod_tells_that_before_its_deletion() -> None:
    pod = start(
        node="gpu-1",
        conditions=[condition("DisruptionTarget", since=8, reason="PreemptionByScheduler")],
        metadata={"deletionTimestamp": at(38)},
    )
    found = troubles(pod, [event("Preempted", "Preempted by pod 81b2 on node gpu-1", 8)])

    assert kinds(found) == [Kind.PREEMPTED, Kind.DELETED]
    assert all(it.is_final for it in found)


def test_a_lost_node_that_works_again_is_over() -> None:
    lost = warning("NodeNotReady", "Node is not ready", 30)

    for started, is_over in ((20, False), (30, False), (60, True)):
        pod = start(node="gpu-1", notebook={"state": {"running": {"startedAt": at(started)}}})
        assert only(troubles(pod, [lost])).is_over is is_over


@pytest.mark.parametrize(
    ("cancelled", "is_over"), [(None, False), (20, False), (30, True), (40, True)]
)
def test_a_taints_deletion_is_over_if_it_is_cancelled_later(cancelled, is_over) -> None:
    events = [event("TaintManagerEviction", "Marking for deletion Pod hub/jupyter-ann", 30)]
    if cancelled is not None:
        said = "Cancelling deletion of Pod hub/jupyter-ann"
        events.append(event("TaintManagerEviction", said, cancelled))

    trouble = only(troubles(start(node="gpu-1"), events))

    assert (trouble.kind, trouble.is_over) == (Kind.TAINTED, is_over)


def test_an_unschedulable_pod_has_the_schedulers_whole_text() -> None:
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    said = condition("PodScheduled", "False", 1, reason="Unschedulable", message=text)
    trouble = only(troubles(start(conditions=[said]), []))

    assert (trouble.kind, trouble.text, trouble.is_final) == (Kind.UNSCHEDULABLE, text, False)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_in_final_trouble_even_without_a_word(phase) -> None:
    trouble = only(troubles(start(phase=phase), []))

    assert (trouble.kind, trouble.is_final) == (Kind.FAILED, True)


def test_a_pod_whose_container_ended_needs_no_other_reason() -> None:
    pod = start(phase="Failed", notebook={"state": ended(1)}, restart_policy="Never")

    assert kinds(troubles(pod, [])) == [Kind.CRASHED]


def test_a_deleted_pod_never_starts() -> None:
    trouble = only(troubles(start(metadata={"deletionTimestamp": at(9)}), []))

    assert (trouble.kind, trouble.is_final, trouble.text) == (Kind.DELETED, True, "")
