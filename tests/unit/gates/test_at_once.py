"""Coroutines run until they wait; tests/hub/gates/test_refusals.py tests this in a hub."""

import asyncio
from functools import partial

import pytest

from gpuspawner.gates.at_once import at_once

pytestmark = pytest.mark.each_python


async def _wait_then(value: str) -> str:
    await asyncio.sleep(0)
    return value


async def _at_once(value: str) -> str:
    return value


async def test_a_coroutine_that_does_not_wait_finishes_at_once() -> None:
    assert at_once(partial(_at_once, "done")) == "done"


async def test_a_coroutine_that_waits_returns_the_rest_to_await() -> None:
    rest = at_once(partial(_wait_then, "done"))

    assert await rest == "done"


async def test_after_sleep_0_a_coroutine_continues_where_it_was() -> None:
    steps: list[str] = []

    async def gate() -> str:
        steps.append("begun")
        await asyncio.sleep(0)
        steps.append("waited")
        return "done"

    rest = at_once(gate)
    assert steps == ["begun"]

    assert await rest == "done"
    assert steps == ["begun", "waited"]


async def test_after_any_other_first_wait_a_coroutine_starts_again() -> None:
    steps: list[str] = []
    hook: asyncio.Future[str] = asyncio.Future()

    async def gate() -> str:
        steps.append("begun")
        try:
            return await hook
        finally:
            steps.append("ended")

    rest = at_once(gate)
    assert steps == ["begun", "ended"]
    hook.set_result("done")

    assert await rest == "done"
    assert steps == ["begun", "ended"] * 2


async def test_only_the_first_wait_decides_whether_a_coroutine_continues() -> None:
    steps: list[str] = []
    hook: asyncio.Future[str] = asyncio.Future()

    async def gate() -> str:
        steps.append("begun")
        await asyncio.sleep(0)
        return await hook

    rest = at_once(gate)
    hook.set_result("done")

    assert await rest == "done"
    assert steps == ["begun"]


async def test_a_coroutine_can_catch_an_error_of_its_wait() -> None:
    failing: asyncio.Future[None] = asyncio.Future()

    async def catches() -> str:
        try:
            await failing
        except ValueError as error:
            return f"caught {error}"
        return "not caught"

    rest = at_once(catches)
    failing.set_exception(ValueError("it"))

    assert await rest == "caught it"


async def test_cancelling_the_rest_cancels_the_coroutine() -> None:
    ended = []

    async def tidies() -> None:
        try:
            await asyncio.Future()
        finally:
            ended.append("tidied")

    rest = at_once(tidies)
    ended.clear()
    task = asyncio.ensure_future(rest)
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tidied"]


async def test_cancelling_a_continued_coroutine_cancels_it() -> None:
    ended = []

    async def tidies() -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.Future()
        finally:
            ended.append("tidied")

    task = asyncio.ensure_future(at_once(tidies))
    await asyncio.sleep(0)
    assert ended == []
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tidied"]


async def _gives_up() -> str:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.Future()
    except TimeoutError:
        return "given up"
    return "waited"


async def _says_so_and_gives_up() -> str:
    await asyncio.sleep(0)
    return await _gives_up()


@pytest.mark.parametrize("waits", [_gives_up, _says_so_and_gives_up])
async def test_a_time_out_inside_the_coroutine_cancels_nothing_else(waits: object) -> None:
    async def spawn() -> str:
        # The hub makes a task of a hook's result, and may wait for it in any way.
        hook = asyncio.ensure_future(at_once(waits))
        await asyncio.wait([hook])
        return hook.result()

    assert await asyncio.create_task(spawn()) == "given up"


def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    async def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        at_once(fails)
