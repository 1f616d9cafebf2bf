"""Who at the front of the line needs no place any more."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.fronts import UNSURE_SECONDS, Fronts
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
    decisions = {
        "busy": refused(Reason.BUSY),
        "away": refused(Reason.AWAY),
        "later": refused(Reason.TRY_AGAIN),
        "free": Start(GRANT),
    }
    assert done(lambda key: decisions[key[1]], *decisions) == []


def test_who_fits_for_all_anybody_knows_goes_on_only_if_that_lasts(clock) -> None:
    unknown = Start(GRANT, (UnknownRules(("PriorityClasses are read again",)),))
    decisions = {"ann": unknown, "bob": refused(Reason.BUSY)}
    them = Fronts(line_of(*decisions), lambda key: decisions[key[1]])
    assert them.done(math.inf) == []
    clock.now += UNSURE_SECONDS
    decisions["ann"] = refused(Reason.BUSY)  # the API server has restarted
    assert them.done(math.inf) == []

    decisions["ann"] = unknown
    assert them.done(math.inf) == []
    clock.now += UNSURE_SECONDS
    assert [it.person for it in them.done(math.inf)] == ["ann"]


def test_those_go_on_whom_no_place_helps() -> None:
    decisions = {"never": refused(Reason.IMPOSSIBLE), "busy": refused(Reason.BUSY)}
    assert done(lambda key: decisions[key[1]], *decisions) == ["never"]


def test_only_those_are_looked_at_who_joined_before_a_time() -> None:
    found = done(lambda _: refused(Reason.IMPOSSIBLE), "one", "two", "three", until=1.5)
    assert found == ["one", "two"]


class Odd:
    """Decides about all but some."""

    def __init__(self, *odd: str) -> None:
        self.odd = odd

    def __call__(self, key: Key) -> Decision:
        if key[1] in self.odd:
            raise RuntimeError("a fault")
        return refused(Reason.BUSY)


def test_one_about_whom_nothing_can_be_decided_goes_on_and_keeps_nobody_up(caplog) -> None:
    them = Fronts(line_of("odd", "one", "two"), Odd("odd"))

    assert them.done(math.inf) == []
    assert [it.person for it in them.done(math.inf)] == ["odd"]
    assert "No decision about jhub/odd in line" in caplog.text


def test_if_nothing_can_be_decided_about_anybody_all_keep_their_places() -> None:
    decide = Odd("one", "two", "three")
    them = Fronts(line_of("one", "two", "three"), decide)
    assert [them.done(math.inf) for _ in range(5)] == [[]] * 5

    decide.odd = ()
    assert [them.done(math.inf) for _ in range(5)] == [[]] * 5


def test_if_there_are_many_they_take_turns_whoever_comes_and_goes(clock) -> None:
    asked = []

    def slowly(key):
        clock.worked += 0.006
        asked.append(key[1])
        return refused(Reason.BUSY)

    line = line_of("a", "b", "c", "d")
    them = Fronts(line, slowly)
    for turn in range(40):
        for name in ("c", "d"):
            (line.step_aside if turn % 2 else line.step_back)(("jhub", name))
        assert not them.done(math.inf)

    assert set(asked) == {"a", "b", "c", "d"}
    assert min(asked.count(name) for name in "abcd") >= 8
