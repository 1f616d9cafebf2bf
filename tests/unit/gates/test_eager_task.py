"""Coroutines run until they wait; tests/hub/gates/test_refusals.py tests this in a hub."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial

import pytest

from gpuspawner.gates.eager_task import at_once

pytestmark = pytest.mark.each_python


async def _done() -> str:
    return "done"


async def _fails() -> None:
    raise ValueError("it fails")


async def test_a_coroutine_that_does_not_wait_finishes_at_once() -> None:
    assert at_once(_done()) == "done"


@pytest.fixture(
    params=[
        None,
        pytest.param(
            getattr(asyncio, "eager_task_factory", None),
            marks=pytest.mark.skipif(
                sys.version_info < (3, 12), reason="version: Python 3.12 brought eager tasks"
            ),
        ),
    ],
    ids=["a loop", "a loop whose tasks are eager"],
)
async def factory(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(request.param)
    yield
    loop.set_task_factory(None)


@pytest.mark.usefixtures("factory")
async def test_an_error_before_the_first_wait_is_raised_at_once() -> None:
    with pytest.raises(ValueError, match="it fails"):
        at_once(_fails())


async def test_the_rest_of_a_coroutine_that_only_lets_others_run_takes_one_round() -> None:
    async def lets_others_run() -> None:
        await asyncio.sleep(0)

    rest = at_once(lets_others_run())

    await asyncio.sleep(0)

    assert isinstance(rest, asyncio.Task)
    assert rest.done()


WAITS: dict[str, Callable[[], Awaitable[object]]] = {
    "sleep": partial(asyncio.sleep, 0),
    "longer sleep": partial(asyncio.sleep, 0.001),
    "thread": partial(asyncio.to_thread, int),
    "time-out": lambda: asyncio.wait_for(asyncio.sleep(0.001), 1),
    "task": lambda: asyncio.create_task(asyncio.sleep(0)),
    "several": lambda: asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001)),
}


@pytest.mark.parametrize("waits", WAITS.values(), ids=WAITS)
async def test_a_coroutine_takes_no_step_twice_whatever_it_waits_for(
    waits: Callable[[], Awaitable[object]],
) -> None:
    steps: list[str] = []

    async def gate() -> str:
        steps.append("begun")
        await waits()
        steps.append("waited")
        await waits()
        return "done"

    rest = at_once(gate())
    assert steps == ["begun"]

    assert await rest == "done"
    assert steps == ["begun", "waited"]


async def test_a_coroutine_is_in_one_task_and_one_context_from_its_first_line_on() -> None:
    tasks, kept = [], ContextVar[str]("kept")

    async def gate() -> None:
        token = kept.set("inside")
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        kept.reset(token)

    kept.set("outside")
    current = asyncio.current_task()
    rest = at_once(gate())
    assert asyncio.current_task() is current
    await rest

    assert tasks == [rest, rest]
    assert kept.get() == "outside"


async def test_a_coroutine_can_catch_an_error_of_its_wait() -> None:
    failing: asyncio.Future[None] = asyncio.Future()

    async def catches() -> str:
        try:
            await failing
        except ValueError as error:
            return f"caught {error}"
        return "not caught"

    rest = at_once(catches())
    failing.set_exception(ValueError("it"))

    assert await rest == "caught it"


async def test_several_may_wait_for_the_same_future_in_one_moment() -> None:
    shared: asyncio.Future[str] = asyncio.Future()

    async def waits() -> str:
        return await shared

    told = [at_once(waits()), at_once(waits()), asyncio.create_task(waits())]
    await asyncio.sleep(0)
    shared.set_result("done")

    assert await asyncio.gather(*told) == ["done"] * 3


@pytest.mark.parametrize("rounds", [0, 1, 2])
async def test_cancelling_the_rest_cancels_the_coroutine_and_what_it_waits_for(rounds: int) -> None:
    child, ended = asyncio.create_task(asyncio.Event().wait()), []

    async def tidies() -> None:
        try:
            await child
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("tidied")
            raise

    task = at_once(tidies())
    for _ in range(rounds):
        await asyncio.sleep(0)
    assert ended == []
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tidied"]
    assert child.cancelled()


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
        hook = asyncio.ensure_future(at_once(waits()))
        await asyncio.wait([hook])
        return hook.result()

    assert await asyncio.create_task(spawn()) == "given up"


async def test_of_a_coroutine_that_has_ended_nothing_is_left(caplog) -> None:
    before = asyncio.all_tasks()
    at_once(_done())
    with suppress(ValueError):
        at_once(_fails())
    await asyncio.sleep(0)
    gc.collect()

    assert asyncio.all_tasks() == before
    assert not caplog.records
