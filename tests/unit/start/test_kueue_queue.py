"""The queue and the priority of a pod."""

from __future__ import annotations

from gpuspawner.kube.kueue import PRIORITY, QUEUE
from gpuspawner.start.kueue_queue import queued

POD = {"metadata": {"name": "jupyter-ann", "labels": {"app": "hub"}}, "spec": {}}


def labels(queue: str, priority: str = "", **own: str) -> dict[str, str]:
    given = {**POD, "metadata": {**POD["metadata"], "labels": own}}
    found: dict[str, str] = queued(given, queue, priority)["metadata"]["labels"]
    return found


def test_a_pod_names_its_queue_and_its_priority() -> None:
    assert labels("gpus", "urgent") == {QUEUE: "gpus", PRIORITY: "urgent"}


def test_what_the_administrator_has_written_stays() -> None:
    own = {QUEUE: "theirs", PRIORITY: "low"}
    assert labels("gpus", "urgent", **own) == own


def test_without_a_queue_a_pod_has_no_priority_either() -> None:
    assert labels("", "urgent") == {}
    assert labels("", "urgent", **{QUEUE: "theirs"}) == {QUEUE: "theirs", PRIORITY: "urgent"}


def test_the_given_pod_stays_as_it_was() -> None:
    queued(POD, "gpus")

    assert POD["metadata"]["labels"] == {"app": "hub"}
    assert queued({"spec": {}}, "gpus") == {"spec": {}, "metadata": {"labels": {QUEUE: "gpus"}}}
