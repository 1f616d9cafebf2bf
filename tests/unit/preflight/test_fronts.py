"""Who at the front of the line needs no place any more."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gpuspawner.policy import Grant
from gpuspawner.preflight import fronts
from gpuspawner.preflight.decision import (
    Decision,
    Reason,
    Refuse,
    Start,
    UnknownRules,
)
from gpuspawner.preflight.fronts import Fronts
from gpuspawner.queue.line import Line
from gpuspawner.queue.ticket import Key, Ticket

GRANT = Grant(None, 0)


def line_of(*names: str) -> Line:
    """A line in which each waits for something else."""
    line = Line()
    for since, name in enumerate(names):
        line.join(Ticket(("jhub", name), name, name, {}, float(since)))
    return line


def refused(reason: Reason) -> Refuse:
    return Refuse(GRANT, reason)


def done(decide: Callable[[Key], Decision], *names: str, until: float = math.inf) -> list[str]:
    return [it.key[1] for it in Fronts(line_of(*names), decide).done(until)]


def test_those_stay_who_are_refused_as_busy_or_whom_the_line_calls_itself() -> None:
    decisions: dict[str, Decision] = {
        "busy": refused(Reason.BUSY),
        "away": refused(Reason.AWAY),
        "later": refused(Reason.TRY_AGAIN),
        "free": Start(GRANT),
    }
    assert done(lambda key: decisions[key[1]], *decisions) == []


def test_those_go_on_whom_no_place_helps() -> None:
    decisions: dict[str, Decision] = {
        "never": refused(Reason.IMPOSSIBLE),
        "busy": refused(Reason.BUSY),
        "unknown": Start(GRANT, (UnknownRules(("a rule",)),)),
    }
    assert set(done(lambda key: decisions[key[1]], *decisions)) == {"never", "unknown"}


def test_only_those_are_looked_at_who_joined_before_a_time() -> None:
    assert done(lambda _: refused(Reason.IMPOSSIBLE), "one", "two", "three", until=1.5) == [
        "two",
        "one",
    ]


def test_one_about_whom_nothing_can_be_decided_goes_on_and_keeps_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def decide(key: Key) -> Decision:
        if key[1] == "odd":
            raise RuntimeError("a fault")
        return refused(Reason.IMPOSSIBLE)

    assert set(done(decide, "one", "odd", "two")) == {"one", "odd", "two"}
    assert "No decision about jhub/odd in line" in caplog.text


def test_if_there_are_many_they_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "_SECONDS", -1.0)  # each takes too long
    asked: list[str] = []

    def decide(key: Key) -> Decision:
        asked.append(key[1])
        return refused(Reason.BUSY)

    them = Fronts(line_of("one", "two", "three"), decide)
    for _ in range(6):
        assert not them.done(math.inf)

    assert sorted(asked[:3]) == sorted(asked[3:]) == ["one", "three", "two"]
