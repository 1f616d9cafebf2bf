"""How long a place in line may take."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from gpuspawner.line.estimate import TIMES, Forecast, Occupant, Range
from gpuspawner.line.survival import Survival

HOURS = Survival.of([3600.0 * it for it in range(1, 11)])


def until_free(needed: int, occupants: list[Occupant], survival: Survival) -> Range | None:
    return Forecast(occupants, survival).until_free(needed)


def test_nothing_is_said_without_ground() -> None:
    assert until_free(1, [Occupant(1, 0)], Survival()) is None
    assert until_free(1, [Occupant(1, 0)], Survival.of([60.0] * 7)) is None
    assert until_free(2, [Occupant(1, 0, left=60)], Survival()) is None
    assert until_free(1, [], HOURS) is None


def test_a_lifetime_is_ground_enough() -> None:
    assert until_free(1, [Occupant(1, 0, left=590)], Survival()) == Range(540, 600)


def test_what_is_free_takes_no_time() -> None:
    assert until_free(0, [], Survival()) == Range(0, 0)


def test_one_server_takes_what_most_take() -> None:
    assert until_free(1, [Occupant(1, 0)], HOURS) == Range(105 * 60, 8 * 3600)


def test_more_servers_free_a_gpu_earlier_and_later_places_take_longer() -> None:
    ages = [Occupant(1, 600.0 * it) for it in range(20)]
    one, many, tenth = (until_free(*it, HOURS) for it in ((1, ages[:1]), (1, ages), (10, ages)))

    assert one is not None
    assert many is not None
    assert tenth is not None
    assert many.high < one.high
    assert many.low < tenth.low < tenth.high


@pytest.mark.parametrize("count", [12, 60])
@pytest.mark.parametrize("amount", [1, 4])
def test_at_most_one_wait_in_five_is_shorter_than_the_range_and_one_longer(count, amount) -> None:
    dice = random.Random(7)
    lives = [dice.expovariate(1 / 7200) for _ in range(2000)]
    occupants = [Occupant(amount, 0.0) for _ in range(count)]
    found = until_free(amount * count // 4, occupants, Survival.of(lives))
    assert found is not None

    waits = [sorted(dice.choice(lives) for _ in range(count))[count // 4 - 1] for _ in range(2000)]

    assert sum(it > found.high for it in waits) / 2000 <= 0.23
    assert sum(it < found.low for it in waits) / 2000 <= 0.23
    before_high, after_low = (
        TIMES[TIMES.index(it) + by] for it, by in ((found.high, -1), (found.low, 1))
    )
    assert sum(it > before_high for it in waits) / 2000 >= 0.17
    assert sum(it < after_low for it in waits) / 2000 >= 0.17


def test_devices_that_are_counted_in_thousands_cost_no_more_than_others() -> None:
    """Some device plugins offer a GPU's memory as a resource, in MiB."""
    occupants = [Occupant(24_000, 0, left=600.0 + it) for it in range(12)]
    tracemalloc.start()
    try:
        assert until_free(24_000, occupants, HOURS) == Range(540, 600)
        assert tracemalloc.get_traced_memory()[1] < 100_000, "it keeps a number for each device"
    finally:
        tracemalloc.stop()
