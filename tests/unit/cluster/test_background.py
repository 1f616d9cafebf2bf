"""Work in the background takes turns, and gives way to everything else on the event loop."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from gpuspawner.cluster import background
from gpuspawner.cluster.background import Background, Turn, TurnsToLook
from tests.unit.makers.clocks import Clock

pytestmark = pytest.mark.each_python


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clocks that `background` reads; they stand still unless a test moves them."""
    clock = Clock()
    for name in ("perf_counter", "thread_time", "monotonic"):
        monkeypatch.setattr(background.time, name, clock)
    return clock


async def work(its: Background, clock: Clock, done: list[str], name: str, parts: int = 3) -> None:
    """Work in parts of 0.6 ms: two of them make a long turn."""
    async with its:
        for part in range(parts):
            clock.now += 0.0006
            done.append(f"{name}{part}")
            await its.end_turn_if_long()


async def busy(clock: Clock, done: list[str], rounds: int, each: float) -> None:
    """Be busy in each round of the loop, as a request may be."""
    for number in range(rounds):
        clock.now += each
        done.append(f"request{number}")
        await asyncio.sleep(0)


async def test_other_tasks_run_after_a_long_turn_and_not_before(clock) -> None:
    done: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(Background(), clock, done, "ours", parts=4))
        group.create_task(busy(clock, done, 1, 0.0001))

    assert done == ["ours0", "ours1", "request0", "ours2", "ours3"]


async def test_a_request_that_has_begun_is_answered_before_the_next_turn(clock) -> None:
    done: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(Background(), clock, done, "ours"))
        group.create_task(busy(clock, done, 4, 0.0005))

    assert done == ["ours0", "ours1", *(f"request{n}" for n in range(4)), "ours2"]


async def test_the_work_goes_on_in_a_hub_that_is_never_free(clock) -> None:
    done: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(Background(), clock, done, "ours", parts=5))
        group.create_task(busy(clock, done, 30, 0.003))

    rounds = [index for index, it in enumerate(done) if it.startswith("ours")]
    assert done[:4] == ["ours0", "ours1", "request0", "request1"]
    assert rounds[-1] < 10


async def test_turns_get_longer_beside_others_whose_turns_are_long(clock) -> None:
    done: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(Background(), clock, done, "ours", parts=200))
        group.create_task(busy(clock, done, 40, 0.05))

    at = [index for index, it in enumerate(done) if it.startswith("request")]
    between = [after - before - 1 for before, after in itertools.pairwise(at)]
    assert at[0] == 2
    assert max(between) == 17  # parts of 0.6 ms: 10 ms, a fifth of what others took


async def test_a_task_that_has_waited_works_before_the_next_turn_of_the_other(clock) -> None:
    its, done = Background(), []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(its, clock, done, "list", parts=20))
        group.create_task(work(its, clock, done, "event", parts=1))

    assert done[:4] == ["list0", "list1", "event0", "list2"]


@pytest.mark.parametrize("rounds", range(1, 12))
async def test_whenever_a_task_is_cancelled_the_turn_is_free_at_the_end(clock, rounds) -> None:
    its, done = Background(), []
    tasks = [asyncio.create_task(work(its, clock, done, name, parts=9)) for name in "abc"]
    for _ in range(rounds):
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)

    assert "c8" in done
    assert not its._working.locked()


async def test_the_work_goes_on_beside_others_that_need_little_in_each_round(clock) -> None:
    done: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(work(Background(), clock, done, "ours"))
        group.create_task(busy(clock, done, 30, 0.00021))

    assert done.index("ours2") == 22


async def test_only_one_task_works_between_two_rounds_of_the_loop(clock) -> None:
    its, done = Background(), []
    held: list[float] = []

    async def look() -> None:
        while len(done) < 9:
            before = clock.now
            await asyncio.sleep(0)
            held.append(clock.now - before)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        for name in ("nodes", "pods", "claims"):
            group.create_task(work(its, clock, done, name))

    assert len(done) == 9
    assert max(held) < 0.0013  # two parts, of one task


async def test_other_tasks_run_after_each_long_turn_and_not_before(clock, rounds) -> None:
    its, began = Turn(2.0), clock.now
    seen = []
    for now in (1.0, 2.5, 3.5, 4.0, 5.0):
        clock.now = began + now
        before = rounds.count
        await its.end_if_long()
        seen.append(rounds.count > before)

    assert seen == [False, True, False, False, True]


async def test_each_of_many_who_look_for_long_has_its_turn_although_one_always_asks_first(
    clock,
) -> None:
    turns, looks = TurnsToLook(lambda: None), dict.fromkeys("abc", 0)
    for _ in range(300):
        clock.now += 0.01
        for name in looks:
            if turns.is_turn_of(name):
                with turns.taken_by(name):
                    clock.now += 0.01
                looks[name] += 1

    assert sum(looks.values()) > 25
    assert max(looks.values()) - min(looks.values()) <= 1


async def test_nobody_waits_for_somebody_who_no_longer_asks(clock) -> None:
    turns = TurnsToLook(lambda: None)
    assert turns.is_turn_of("gone")
    assert not turns.is_turn_of("here")
    clock.now += 1
    assert not turns.is_turn_of("here")
    clock.now += 1
    assert turns.is_turn_of("here")


async def test_who_has_a_node_holds_nobody_up() -> None:
    turns = TurnsToLook(lambda: None)
    assert turns.is_turn_of("served")
    assert not turns.is_turn_of("here")

    turns.leave("served")

    assert turns.is_turn_of("here")
