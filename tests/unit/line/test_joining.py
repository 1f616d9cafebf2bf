"""Who may join the line, and who keeps the place, by what a start was refused for."""

import pytest

from gpuspawner.line.joining import lets_join, lets_stay
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import AfterPreemption, Reason, Refuse, Start
from gpuspawner.start.asking_preflight import offers_line
from gpuspawner.start.policing import LIMIT, UNCOUNTED
from gpuspawner.start.refusal import Refusal

GRANT = Grant()
BUSY = Refuse(GRANT, Reason.BUSY)


def refusal(slug, place=0):
    text = Message.of("no")
    return Refusal(text, reason=slug, on_form=OnForm(text, place=place))


def nobody():
    raise AssertionError("the refusal alone says it")


WHO_JOINS = [("busy", 3, True), (LIMIT, 0, True), (UNCOUNTED, 0, False)]
WHO_JOINS += [(slug, 0, False) for slug in ("busy", "away", "impossible", "quota")]


@pytest.mark.parametrize(("slug", "place", "joins"), WHO_JOINS)
def test_who_finds_everything_in_use_or_has_used_up_a_limit_may_join(slug, place, joins):
    assert lets_join(refusal(slug, place), nobody) is joins


@pytest.mark.parametrize("slug", ["busy", "away", "try-again", "uncounted", LIMIT])
def test_who_has_a_place_keeps_it_while_that_may_pass(slug):
    assert lets_stay(refusal(slug))


@pytest.mark.parametrize("place", [0, 3])
async def test_a_form_lets_those_on_who_have_a_place_in_a_line(place):
    async def may_wait():
        raise AssertionError("the refusal alone says it")

    assert await offers_line(refusal("busy", place), may_wait) is bool(place)


@pytest.mark.parametrize(
    ("decision", "may_wait"),
    [
        (BUSY, True),
        (Start(GRANT), True),
        (Refuse(GRANT, Reason.IMPOSSIBLE), False),
        (Start(GRANT, (AfterPreemption(),)), False),
    ],
    ids=["busy", "room that others may take", "impossible", "after preemption"],
)
def test_if_nobody_can_tell_in_time_only_those_wait_whom_the_line_keeps(decision, may_wait):
    """The line lets others go at once, and they would come back for ever."""
    assert lets_join(refusal("try-again"), lambda: decision) is may_wait
