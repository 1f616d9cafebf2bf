"""Turns: so many at the same time, and so many a second."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from gpuspawner.admission.slots import Budget, Slots, TooManyDryRunsError


class Room:
    """Where people are while they hold a slot."""

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


async def test_of_all_and_of_one_person_only_so_many_hold_a_slot() -> None:
    room = Room(Slots(most=3, of_one=2, seconds=60))

    await asyncio.gather(*(room.enter(person) for person in ["ann"] * 20 + ["bob", "eve"]))

    assert room.most["ann"] == 2
    assert room.most["in all"] == 3


async def test_a_person_with_many_questions_does_not_fill_the_queue_before_others() -> None:
    slots = Slots(most=2, of_one=1, seconds=60)
    order: list[str] = []

    async def ask(person: str) -> None:
        async with slots.slot(person):
            await asyncio.sleep(0)
            order.append(person)

    await asyncio.gather(*(ask(person) for person in ["ann"] * 10 + ["bob"]))

    assert order.index("bob") <= 1


async def test_who_finds_no_slot_in_time_is_told() -> None:
    slots = Slots(most=1, of_one=1, seconds=0.01)

    async with slots.slot("ann"):
        for person in ("ann", "bob"):
            with pytest.raises(TooManyDryRunsError):
                async with slots.slot(person):
                    pass

    async with slots.slot("bob"):  # nothing is left over of those who gave up
        pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_so_many_a_second_are_given_out_and_some_are_saved_up() -> None:
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


def test_half_of_what_is_saved_up_is_left_to_who_had_none_lately() -> None:
    clock = Clock()
    budget = Budget(4, 8, lately=60, clock=clock)

    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2
    assert budget.take("bob")

    clock.now = 61
    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2
