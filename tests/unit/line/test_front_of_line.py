"""Who at the front of the line needs no place any more."""

import math

import msgspec
import pytest

from gpuspawner.line.front_of_line import GONE_SECONDS, UNSURE_SECONDS, Fronts
from gpuspawner.line.tickets import Line, Ticket
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Reason, Refuse, Start, UnknownRules, Wait
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Source

pytestmark = pytest.mark.usefixtures("clock")

GRANT = Grant(None, 0)


def line_of(*names):
    """A line in which each waits for something else."""
    line = Line()
    for since, name in enumerate(names):
        line.join(Ticket(("jhub", name), name, name, {}, float(since)))
    return line


def refused(reason):
    return Refuse(GRANT, reason)


def done(decide, *names, until=math.inf):
    return persons(Fronts(line_of(*names), decide), until)


def persons(fronts, until=math.inf):
    """Let go whom no place helps, as the line does."""
    found = []
    for ticket, _ in fronts.done(until):
        fronts._line.leave(ticket.key)
        found.append(ticket.person)
    return found


def test_those_stay_who_are_refused_as_busy_or_whom_the_line_calls_itself():
    decisions = {
        "busy": refused(Reason.BUSY),
        "away": refused(Reason.AWAY),
        "later": refused(Reason.TRY_AGAIN),
        "free": Start(GRANT),
    }
    assert done(lambda key: decisions[key[1]], *decisions) == []


def test_who_fits_for_all_anybody_knows_goes_on_only_if_that_lasts(clock):
    unknown = Start(GRANT, (UnknownRules(("PriorityClasses are read again",)),))
    decisions = {"ann": unknown, "bob": refused(Reason.BUSY)}
    them = Fronts(line_of(*decisions), lambda key: decisions[key[1]])
    assert persons(them) == []
    clock.now += UNSURE_SECONDS
    decisions["ann"] = refused(Reason.BUSY)  # the API server has restarted
    assert persons(them) == []

    decisions["ann"] = unknown
    assert persons(them) == []
    clock.now += UNSURE_SECONDS
    assert persons(them) == ["ann"]


def test_whom_no_node_can_hold_any_more_stays_until_that_has_lasted(clock):
    """A node that is maintained comes back, or the cloud sends another one."""
    gone, unknown = refused(Reason.IMPOSSIBLE), Start(GRANT, (UnknownRules(("?",)),))
    decisions = {"ann": gone, "bob": refused(Reason.BUSY)}
    line = line_of(*decisions)
    ann, bob = line
    them = Fronts(line, lambda key: decisions[key[1]])
    assert persons(them) == []
    assert (them.seconds_left(ann), them.seconds_left(bob)) == (GONE_SECONDS, None)
    clock.now += GONE_SECONDS / 2
    decisions["ann"] = unknown  # the API server restarts meanwhile
    assert persons(them) == []
    assert them.seconds_left(ann) == GONE_SECONDS / 2
    decisions["ann"] = refused(Reason.BUSY)
    assert persons(them) == []
    assert them.seconds_left(ann) is None

    decisions["ann"] = gone
    assert persons(them) == []
    clock.now += GONE_SECONDS
    assert persons(them) == ["ann"]


def test_nodes_that_went_before_somebody_was_away_cost_nobody_the_place_at_once(clock):
    """While nobody of a lane may be called, nobody looks whether its node has come back."""
    gone = refused(Reason.IMPOSSIBLE)
    line = line_of("ann")
    [ann] = line
    them = Fronts(line, lambda _: gone)
    assert persons(them) == []

    line.hold_back(ann.key)
    assert persons(them) == []
    assert them.seconds_left(ann) is None
    clock.now += GONE_SECONDS
    line.let_back(ann.key)

    assert persons(them) == []
    assert them.seconds_left(ann) == GONE_SECONDS


@pytest.mark.parametrize(
    ("scale_up", "stays"),
    [
        (MayScaleUp(Source.NODES), True),
        (MayScaleUp(Source.NODES, on_its_way=True), False),
        (MayScaleUp(Source.CLUSTER_AUTOSCALER, is_listed=True), False),
        (CanScaleUp(0, 1, None), False),
    ],
)
def test_of_those_who_want_the_same_one_at_a_time_shows_whether_a_node_comes(scale_up, stays):
    them = Fronts(line_of("ann"), lambda _: Wait(GRANT, scale_up), lambda _: True)

    assert persons(them) == ([] if stays else ["ann"])


def test_who_leaves_the_lane_lets_the_next_go_in_the_same_look():
    """What the first needs may have changed since, so that others needn't wait for it."""
    line = Line()
    for since, name in enumerate(("ann", "bob")):
        line.join(Ticket(("jhub", name), name, "any zone", {}, float(since)))

    def renewed(ticket):
        if ticket.person != "ann" or ticket.needs == "zone a":
            return ticket
        now = msgspec.structs.replace(ticket, needs="zone a")
        line.join(now)
        return now

    decisions = {"ann": refused(Reason.BUSY), "bob": Wait(GRANT, CanScaleUp(0, 1, None))}
    them = Fronts(line, lambda key: decisions[key[1]], renewed=renewed)

    assert persons(them) == ["bob"]
    assert [it.needs for it in line] == ["zone a"]
    assert persons(them) == []


@pytest.mark.parametrize(("needs", "lets_go"), [("a", True), ("b", False)])
def test_the_time_of_who_changes_the_lane_runs_on_only_if_the_same_is_needed(needs, lets_go, clock):
    """Labels count only while some pod repels others by them."""
    line = Line()
    line.join(Ticket(("jhub", "ann"), "ann", "a", {}, 0.0))

    def renewed(ticket):
        now = msgspec.structs.replace(ticket, needs=needs, shape="labels")
        line.join(now)
        return now

    them = Fronts(line, lambda _: refused(Reason.IMPOSSIBLE))
    assert persons(them) == []
    clock.now += GONE_SECONDS
    them._renewed = renewed

    assert persons(them) == (["ann"] if lets_go else [])


def test_only_those_are_looked_at_who_joined_before_a_time():
    found = done(lambda _: Wait(GRANT, CanScaleUp(0, 1, None)), "one", "two", "three", until=1.5)
    assert found == ["one", "two"]


class Odd:
    """Decides about all but some."""

    def __init__(self, *odd):
        self.odd = odd

    def __call__(self, key):
        if key[1] in self.odd:
            raise RuntimeError("a fault")
        return refused(Reason.BUSY)


def test_one_about_whom_nothing_can_be_decided_goes_on_and_keeps_nobody_up(caplog):
    them = Fronts(line_of("odd", "one", "two"), Odd("odd"))

    assert persons(them) == []
    assert persons(them) == ["odd"]
    assert "No decision about jhub/odd in line" in caplog.text


def test_if_nothing_can_be_decided_about_anybody_all_keep_their_places():
    decide = Odd("one", "two", "three")
    them = Fronts(line_of("one", "two", "three"), decide)
    assert [persons(them) for _ in range(5)] == [[]] * 5

    decide.odd = ()
    assert [persons(them) for _ in range(5)] == [[]] * 5


def test_it_is_no_fault_of_ones_own_that_deciding_fails_now_and_then_also_about_oneself():
    decide = Odd()
    them = Fronts(line_of("one"), decide)
    for odd in ((), ("one",)) * 3:
        decide.odd = odd
        assert persons(them) == []


def test_if_there_are_many_they_take_turns_whoever_comes_and_goes(clock):
    asked = []

    def slowly(key):
        clock.worked += 0.006
        asked.append(key[1])
        return refused(Reason.BUSY)

    line = line_of("a", "b", "c", "d")
    them = Fronts(line, slowly)
    for turn in range(40):
        for name in ("c", "d"):
            (line.hold_back if turn % 2 else line.let_back)(("jhub", name))
        assert not persons(them)

    assert set(asked) == {"a", "b", "c", "d"}
    assert min(asked.count(name) for name in "abcd") >= 8
