"""The first change is looked at at once, and looks have rests between them."""

import pytest

from gpuspawner.web.stream.rhythm import AT_LEAST_EVERY, LEAST_REST, MOST_REST, SHARE, Rhythm
from tests.unit.makers.clocks import Clock


def looked(seconds: float = 0.0) -> tuple[Clock, Rhythm]:
    """A rhythm after one look that took so much processor time."""
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.end(seconds)
    return clock, rhythm


def test_a_change_after_a_quiet_time_is_looked_at_at_once() -> None:
    clock, rhythm = looked()
    clock.now = 3

    assert rhythm.due() > 0
    rhythm.note()
    assert rhythm.due() == 0


def test_a_change_soon_after_a_look_waits_for_the_end_of_the_rest() -> None:
    clock, rhythm = looked()
    clock.now = 0.1

    rhythm.note()

    assert rhythm.due() == pytest.approx(LEAST_REST - 0.1)


def test_a_thousand_changes_are_one_look() -> None:
    clock, rhythm = looked()
    looks = 0
    for number in range(1000):
        clock.now = number / 1000
        rhythm.note()
        if not rhythm.due():
            looks += 1
            rhythm.begin()
            rhythm.end(0.001)

    assert looks == 1


def test_only_the_first_change_wakes_anybody() -> None:
    _, rhythm = looked()

    assert [rhythm.note(), rhythm.note()] == [True, False]
    rhythm.begin()
    assert rhythm.note()


def test_a_change_during_a_look_is_looked_at_afterwards() -> None:
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.note()
    rhythm.end(0.001)
    clock.now = LEAST_REST

    assert rhythm.due() == 0


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.5, 10.0])
def test_the_rest_is_long_enough_for_the_others_and_short_enough_for_the_form(seconds) -> None:
    _, rhythm = looked(seconds)
    rhythm.note()

    assert LEAST_REST <= rhythm.due() <= MOST_REST < 1
    if rhythm.due() < MOST_REST:
        assert seconds <= rhythm.due() * SHARE


def test_without_a_change_there_is_a_look_now_and_then() -> None:
    clock, rhythm = looked()

    assert rhythm.due() == AT_LEAST_EVERY
    clock.now = AT_LEAST_EVERY
    assert rhythm.due() == 0


def test_a_wished_look_comes_at_its_time_and_once() -> None:
    clock, rhythm = looked()
    rhythm.wish(3)
    rhythm.wish(2)

    assert rhythm.due() == 2
    clock.now = 2
    assert rhythm.due() == 0
    rhythm.begin()
    rhythm.end(0)
    assert rhythm.due() == AT_LEAST_EVERY


def test_a_wished_look_waits_for_the_end_of_the_rest() -> None:
    _, rhythm = looked()
    rhythm.wish(0)

    assert rhythm.due() == LEAST_REST
