"""Who is in line, but isn't called for now."""

import asyncio
from contextlib import ExitStack, suppress
from itertools import pairwise

import pytest
from tornado import web

from tests.unit.makers.worlds import settle

pytestmark = pytest.mark.usefixtures("clock")


async def never():
    return False


async def always():
    return True


async def test_who_is_away_is_passed_and_keeps_the_place(stage):
    with stage.joining("ann") as ann, stage.joining("bob") as bob:
        stage.line.held_back.owner_away(stage.tickets["ann"])
        await stage.ends("x")
        assert (ann.done(), bob.done()) == (False, True)
        assert stage.line.standing(stage.tickets["ann"]).place == 1

        stage.view.remove_pod("y")
        stage.line.held_back.owner_back(stage.tickets["ann"])

        assert ann.done()


async def test_a_limit_keeps_the_place_until_policies_allow_the_server(stage):
    allowed = []

    async def allows():
        return bool(allowed)

    with stage.joining("ann", allows=allows) as ann, stage.joining("bob") as bob:
        stage.line.held_back.owner_back(
            stage.tickets["ann"]
        )  # its page is open, but that isn't enough
        await stage.ends("x")
        assert (ann.done(), bob.done()) == (False, True)
        assert stage.line.held_back.is_limited(stage.tickets["ann"].key)

        allowed.append(True)
        await stage.ends("y")

        assert ann.done()


async def test_a_question_that_fails_ends_nobody_else_s_wait(stage):
    """An administrator's function of policies may raise anything; a start tells its owner so."""

    async def fails():
        raise web.HTTPError(503)

    with stage.joining("ann", allows=fails) as ann, stage.joining("bob") as bob:
        await stage.wakes()

        await stage.ends("x", "y")

        assert (ann.done(), bob.done()) == (True, True)


class Slow:
    """Policies that take their time, and then allow a server.

    Attributes:
        asked, under_way: How often they were asked, and how many questions have no answer yet.
    """

    def __init__(self, seconds=1000000.0):
        self._seconds = seconds
        self.asked = self.under_way = 0

    async def __call__(self):
        self.asked += 1
        self.under_way += 1
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.under_way -= 1
        return True


async def test_a_question_without_an_answer_holds_nobody_up(stage):
    with (
        stage.joining("ann", allows=Slow()),
        stage.joining("bob", allows=always) as bob,
        stage.joining("eve") as eve,
    ):
        await stage.ends("x", "y")
        assert eve.done()

        await asyncio.sleep(1)

        assert bob.done()


async def test_a_late_answer_is_taken_when_it_comes(stage):
    slow = Slow(20)
    with stage.joining("ann", allows=slow) as ann:
        await stage.ends("x")
        await asyncio.sleep(19)
        assert (ann.done(), slow.asked) == (False, 1)

        await asyncio.sleep(3)

        assert ann.done()


async def test_a_question_ends_when_its_ticket_leaves(stage):
    slow = Slow()
    with stage.joining("ann", allows=slow):
        await stage.wakes()
        assert slow.under_way == 1

    await settle()

    assert slow.under_way == 0


async def test_an_answer_that_never_comes_is_asked_for_anew(stage):
    slow = Slow()
    with stage.joining("ann", allows=slow):
        await asyncio.sleep(65)

        assert (slow.asked, slow.under_way) == (2, 1)


async def test_whom_policies_allow_promptly_come_back_in_order(stage):
    with (
        stage.joining("bob", since=2.0, allows=always) as bob,
        stage.joining("ann", since=1.0, allows=Slow(0.1)) as ann,
    ):
        await stage.ends("x")
        await asyncio.sleep(1)

        assert (ann.done(), bob.done()) == (True, False)


async def test_after_a_question_the_hub_does_something_else_for_nine_times_as_long(stage, clock):
    """A function that isn't async holds the hub's loop while it answers."""
    asked = []

    async def allows():
        asked.append(clock.now)
        clock.now += 0.5
        return False

    with stage.joining("ann", allows=allows), stage.joining("bob", allows=allows):
        for _ in range(100):
            stage.view.wake()
            await asyncio.sleep(0.125)

    assert len(asked) > 1
    assert all(after - before >= 5 for before, after in pairwise(asked))


async def test_who_is_away_isnt_called_when_policies_allow_the_server(stage):
    with stage.joining("ann", allows=always) as ann:
        stage.line.held_back.owner_away(stage.tickets["ann"])  # the owner has closed the page
        await stage.ends("x")
        assert not ann.done()

        stage.line.held_back.owner_back(stage.tickets["ann"])

        assert ann.done()


async def test_who_has_left_comes_back_without_the_limit_of_then(stage):
    with stage.joining("ann", allows=never):
        await stage.wakes()

    with stage.joining("ann") as ann:
        assert not stage.line.held_back.is_limited(stage.tickets["ann"].key)
        await stage.ends("x")

        assert ann.done()


async def test_who_left_while_away_comes_back_as_one_who_is_here(stage):
    """Else the place would stay in line for ever, although policies allow the server."""
    with stage.joining("ann"):
        stage.line.held_back.owner_away(stage.tickets["ann"])

    with stage.joining("ann", allows=always) as ann:
        await stage.ends("x")

        assert ann.done()


async def test_a_start_that_joins_again_before_the_last_has_left_keeps_its_place_and_limit(stage):
    first = ExitStack()
    first.enter_context(stage.joining("ann"))
    with stage.joining("ann", allows=never) as ann:
        first.close()
        await stage.ends("x")

        assert stage.line.held_back.is_limited(stage.tickets["ann"].key)
        assert len(stage.line) == 1
        assert not ann.done()


async def test_what_policies_say_of_a_start_that_has_left_lets_no_later_one_in(stage):
    """Not even if an administrator's function goes on although it is cancelled."""
    asked = asyncio.Event()

    async def allows_late():
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return True

    with stage.joining("ann", allows=allows_late):
        await stage.wakes()
        await asyncio.wait_for(asked.wait(), 5)

    with stage.joining("ann", allows=never) as ann:
        await stage.ends("x")

        assert stage.line.held_back.is_limited(stage.tickets["ann"].key)
        assert not ann.done()
