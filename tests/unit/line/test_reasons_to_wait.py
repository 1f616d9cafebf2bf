"""Which refusals let a start wait in line."""

import pytest

from gpuspawner.gates.decisions import offers_line
from gpuspawner.gates.policing import LIMIT
from gpuspawner.gates.refusal import Refusal
from gpuspawner.line.reasons_to_wait import lets_join, lets_stay
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import AfterPreemption, Decision, Reason, Refuse, Start

GRANT = Grant()
BUSY = Refuse(GRANT, Reason.BUSY)


def refusal(slug: str, place: int = 0) -> Refusal:
    text = Message.of("no")
    return Refusal(text, reason=slug, on_form=OnForm(text, place=place))


def nobody() -> Decision:
    raise AssertionError("the refusal alone says it")


async def may() -> bool:
    return True


async def may_not() -> bool:
    return False


async def test_who_finds_everything_in_use_may_wait() -> None:
    busy = refusal("busy", place=3)

    assert await offers_line(busy, may_not)
    assert lets_join(busy, nobody)
    assert lets_stay(busy)


def test_who_has_used_up_a_limit_may_wait_for_it() -> None:
    assert lets_join(refusal(LIMIT), nobody)
    assert lets_stay(refusal(LIMIT))


@pytest.mark.parametrize("slug", ["busy", "away", "try-again"])
def test_who_has_a_place_keeps_it_while_that_may_pass(slug) -> None:
    assert lets_stay(refusal(slug))


@pytest.mark.parametrize("slug", ["busy", "away", "impossible", "quota"])
async def test_without_a_place_in_a_line_nobody_joins(slug) -> None:
    assert not await offers_line(refusal(slug), may)
    assert not lets_join(refusal(slug), nobody)


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
def test_if_nobody_can_tell_in_time_only_those_wait_whom_the_line_keeps(decision, may_wait) -> None:
    """The line lets others go at once, and they would come back for ever."""
    assert lets_join(refusal("try-again"), lambda: decision) is may_wait


async def test_if_nobody_can_tell_in_time_only_who_may_wait_is_let_on_by_a_form() -> None:
    assert await offers_line(refusal("try-again"), may)
    assert not await offers_line(refusal("try-again"), may_not)
