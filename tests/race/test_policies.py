"""A small race for limits; `make race` runs all of them, with fifty people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import LocalCluster
from tests.race.history import History
from tests.race.limits import Class
from tests.race.policies import POLICY_RACES, PolicyResult, arrive, run
from tests.race.policy_stage import PolicyStage, policy_stage
from tests.race.tabs import STARTED, User

PEOPLE = 8
REACHED = {"the course's GPUs": 8, "a user's servers": 2}
"""The limits that the race has to reach, or it would prove nothing."""


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyStage]:
    folder: Path = tmp_path_factory.mktemp("policies")
    with policy_stage(folder, PEOPLE) as ready:
        yield ready


@pytest.fixture(scope="module")
def users(set_up: PolicyStage) -> list[User]:
    return arrive(set_up)


def _until_the_limits_are_reached(stage: PolicyStage, users: list[User]) -> PolicyResult:
    """Run a round, and up to two more: chance decides how many GPUs are wanted at once."""
    killed_and_cut, rounds = POLICY_RACES[-1], list[PolicyResult]()
    for seed in (3, 4, 5):
        rounds.append(run(killed_and_cut, stage, users, seed))
        together = PolicyResult.sum(rounds)
        if together.wrong or together.peaks.items() >= REACHED.items():
            break
    return together


@pytest.mark.nightly("if little is started at a time, no limit is reached")
def test_no_limit_is_exceeded_at_any_moment_and_at_the_end_none_is_refused_wrongly(
    set_up: PolicyStage, users: list[User]
) -> None:
    result = _until_the_limits_are_reached(set_up, users)

    assert not result.wrong, "\n".join(result.lines())
    assert result.answers[STARTED] > PEOPLE
    assert result.peaks.items() >= REACHED.items()


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
