"""What the race for limits counts; `make race` runs it with fifty people."""

from __future__ import annotations

from pathlib import Path

from localcluster import LocalCluster
from tests.race.history import History
from tests.race.limits import Class
from tests.race.policies import PolicyResult


def test_the_history_tells_when_a_limit_is_exceeded(tmp_path: Path) -> None:
    """Otherwise the race would prove nothing."""
    history = History(LocalCluster(tmp_path), "none", Class.of(10).limits)

    for number in range(5):
        history.take(_change("ADDED", f"p{number + 1}", number, gpus=2))
    history.take(_change("DELETED", "p1", 0, gpus=2))
    history.take(_change("ADDED", "p2", 5, gpus=1, server="exp-1"))
    history.take(_change("ADDED", "p2", 6, gpus=1, server="exp-2"))

    told = [line.rpartition(": ")[2] for line in history.exceeded]
    assert told == [
        "course holds 10 of the course's GPUs",
        "course holds 9 of the course's GPUs",
        "p2 holds 4 of a user's GPUs",
        "p2 holds 3 of a user's servers",
        "course holds 10 of the course's GPUs",
        "p2 holds 2 of a user's experiments",
    ]
    assert history.peaks["the course's GPUs"] == 10


def test_rounds_are_summed() -> None:
    one, other = PolicyResult(servers=1, peaks={"a": 1, "b": 2}), PolicyResult(peaks={"b": 1})

    summed = PolicyResult.sum([one, other])

    assert (summed.servers, summed.peaks) == (1, {"a": 1, "b": 2})


def _change(type_: str, user: str, uid: int, *, gpus: int, server: str = "") -> dict[str, object]:
    annotations = {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": server}
    metadata = {"uid": str(uid), "resourceVersion": "1", "annotations": annotations}
    container = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"nodeSelector": {"gpu": "t4"}, "containers": [container]}
    return {"type": type_, "object": {"metadata": metadata, "spec": spec}}
