"""The queue and the priority of a pod."""

import pytest

from gpuspawner.kube.kueue import PRIORITY, QUEUE
from gpuspawner.start.kueue_queue import queued

POD = {"metadata": {"name": "jupyter-ann", "labels": {"app": "hub"}}, "spec": {}}


OWN = {QUEUE: "theirs", PRIORITY: "low"}


@pytest.mark.parametrize(
    ("queue", "own", "found"),
    [
        ("gpus", {}, {QUEUE: "gpus", PRIORITY: "urgent"}),
        ("gpus", OWN, OWN),
        ("", {}, {}),
        ("", {QUEUE: "theirs"}, {QUEUE: "theirs", PRIORITY: "urgent"}),
    ],
    ids=["ours", "the administrator's", "no queue", "their queue alone"],
)
def test_a_pod_in_a_queue_has_a_priority_unless_it_has_its_own(queue, own, found) -> None:
    pod = {**POD, "metadata": {"name": "jupyter-ann", "labels": own}}

    assert queued(pod, queue, "urgent")["metadata"]["labels"] == found


def test_the_given_pod_stays_as_it_was() -> None:
    queued(POD, "gpus")

    assert POD["metadata"]["labels"] == {"app": "hub"}
    assert queued({"spec": {}}, "gpus") == {"spec": {}, "metadata": {"labels": {QUEUE: "gpus"}}}
