"""Who is in line, but isn't called for now."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from tornado import web

from tests.unit.preflight.line_stage import FULL, Stage
from tests.unit.preflight.worlds import settle

pytestmark = pytest.mark.each_python


async def never() -> bool:
    return False


@pytest.fixture
def stage() -> Stage:
    return Stage(*FULL)


async def test_who_is_away_is_passed_and_keeps_the_place(stage: Stage) -> None:
    with stage.joining("ann") as ann, stage.joining("bob", since=2.0) as bob:
        await settle()
        stage.line.step_aside(stage.ticket("ann"))
        stage.view.remove_pod("x")
        await settle()
        assert (ann.done(), bob.done()) == (False, True)
        assert stage.line.standing(stage.ticket("ann")).place == 1

        stage.view.remove_pod("y")
        stage.line.step_back(stage.ticket("ann"))

        assert ann.done()


async def test_a_limit_keeps_the_place_until_policies_allow_the_server(stage: Stage) -> None:
    allowed: list[bool] = []

    async def allows() -> bool:
        return bool(allowed)

    with (
        stage.joining("ann", allows=allows) as ann,
        stage.joining("bob", since=2.0) as bob,
    ):
        await settle()
        stage.line.step_back(stage.ticket("ann"))  # its page is open, but that isn't enough
        stage.view.remove_pod("x")
        await settle()
        assert (ann.done(), bob.done()) == (False, True)
        assert stage.line.is_limited(stage.ticket("ann"))

        allowed.append(True)
        stage.view.remove_pod("y")
        await settle()

        assert ann.done()


async def test_a_question_that_fails_ends_nobody_else_s_wait(stage: Stage) -> None:
    """An administrator's function of policies may raise anything; a start tells its owner so."""

    async def fails() -> bool:
        raise web.HTTPError(503)

    with stage.joining("ann", allows=fails) as ann, stage.joining("bob", since=2.0) as bob:
        await settle()
        stage.view.wake()
        await settle()

        stage.view.remove_pod("x")
        stage.view.remove_pod("y")
        await settle()

        assert (ann.done(), bob.done()) == (True, True)


async def test_a_question_without_an_answer_holds_nobody_up(stage: Stage) -> None:
    async def says_nothing() -> bool:
        await asyncio.Event().wait()
        raise AssertionError

    with stage.joining("ann", allows=says_nothing), stage.joining("bob", since=2.0) as bob:
        stage.view.wake()
        await settle()

        stage.view.remove_pod("x")
        await settle()

        assert bob.done()


async def test_who_is_away_isnt_called_when_policies_allow_the_server(stage: Stage) -> None:
    async def allows() -> bool:
        return True

    with stage.joining("ann", allows=allows) as ann:
        stage.line.step_aside(stage.ticket("ann"))  # the owner has closed the page
        await settle()
        stage.view.remove_pod("x")
        await settle()
        assert not ann.done()

        stage.line.step_back(stage.ticket("ann"))

        assert ann.done()


async def test_who_has_left_comes_back_without_the_limit_of_then(stage: Stage) -> None:
    with stage.joining("ann", allows=never):
        await settle()

    with stage.joining("ann") as ann:
        assert not stage.line.is_limited(stage.ticket("ann"))
        stage.view.remove_pod("x")
        await settle()

        assert ann.done()


async def test_who_left_while_away_comes_back_as_one_who_is_here(stage: Stage) -> None:
    """Else the place would stay in line for ever, although policies allow the server."""
    allowed: list[bool] = []

    async def allows() -> bool:
        return bool(allowed)

    with stage.joining("ann"):
        stage.line.step_aside(stage.ticket("ann"))

    with stage.joining("ann", allows=allows) as ann:
        await settle()
        allowed.append(True)
        stage.view.remove_pod("x")
        await settle()

        assert ann.done()


async def test_a_start_that_joins_again_before_the_last_has_left_keeps_its_place_and_limit(
    stage: Stage,
) -> None:
    first = ExitStack()
    first.enter_context(stage.joining("ann"))
    with stage.joining("ann", allows=never) as ann:
        first.close()
        stage.view.remove_pod("x")
        await settle()

        assert stage.line.is_limited(stage.ticket("ann"))
        assert len(stage.line) == 1
        assert not ann.done()


async def test_what_policies_say_of_a_start_that_has_left_lets_no_later_one_in(
    stage: Stage,
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def allows_late() -> bool:
        asked.set()
        await answer.wait()
        return True

    with stage.joining("ann", allows=allows_late):
        stage.view.wake()
        await asyncio.wait_for(asked.wait(), 5)

    with stage.joining("ann", allows=never) as ann:
        answer.set()
        stage.view.remove_pod("x")
        await settle()

        assert stage.line.is_limited(stage.ticket("ann"))
        assert not ann.done()
