"""Limits at the same time, and limits a second."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from gpuspawner.admission.dry_runs import Budget, Slots, TooManyDryRunsError

pytestmark = pytest.mark.each_python


class Room:
    """Counts who holds a slot, and the most at the same time."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def enter(self, person: str) -> None:
        async with self._slots.slot(person):
            self.inside[person] += 1
            self.most[person] = max(self.most[person], self.inside[person])
            self.most["in all"] = max(self.most["in all"], self.inside.total())
            for _ in range(5):
                await asyncio.sleep(0)
            self.inside[person] -= 1


async def test_slots_are_limited_in_all_and_for_each_user() -> None:
    room = Room(Slots(most=3, of_one=2, seconds=60))

    await asyncio.gather(*(room.enter(person) for person in ["ann"] * 20 + ["bob", "eve"]))

    assert room.most["ann"] == 2
    assert room.most["in all"] == 3


async def test_a_user_with_many_questions_does_not_block_others() -> None:
    slots = Slots(most=2, of_one=1, seconds=60)
    order: list[str] = []

    async def ask(person: str) -> None:
        async with slots.slot(person):
            await asyncio.sleep(0)
            order.append(person)

    await asyncio.gather(*(ask(person) for person in ["ann"] * 10 + ["bob"]))

    assert order.index("bob") <= 1


async def test_waiting_too_long_for_a_slot_is_an_error() -> None:
    slots = Slots(most=1, of_one=1, seconds=0.01)

    async with slots.slot("ann"):
        for person in ("ann", "bob"):
            with pytest.raises(TooManyDryRunsError):
                async with slots.slot(person):
                    pass

    async with slots.slot("bob"):  # those who gave up hold no slot
        pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_budget_gives_out_turns_at_its_rate_and_saves_some_up() -> None:
    clock = Clock()
    budget = Budget(4, 8, lately=60, clock=clock)
    people = iter(range(1_000))

    def taken() -> int:
        count = 0
        while budget.take(f"person-{next(people)}"):
            count += 1
        return count

    assert taken() == 8
    clock.now = 1
    assert taken() == 4
    clock.now = 60
    assert taken() == 8


def test_half_of_the_saved_turns_is_kept_for_users_who_had_none_lately() -> None:
    clock = Clock()
    budget = Budget(4, 8, lately=60, clock=clock)

    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2
    assert budget.take("bob")

    clock.now = 61
    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2
