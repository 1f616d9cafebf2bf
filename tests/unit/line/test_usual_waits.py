"""How long others have waited: a range of real waits, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.line import usual_waits as module
from gpuspawner.line.usual_waits import LEAST_WAITS, UsualWait, Waits

DAY = 24 * 3600.0
NOW = 100 * DAY
A100, T4 = ("", "a100", 1), ("", "t4", 1)


def key(name):
    return "jhub", str(name)


def waited(*minutes, kind=A100, called=NOW, to=None):
    """The waits of people who were all called at one time."""
    found = Waits() if to is None else to
    for number, it in enumerate(minutes):
        found.join(key(number), kind, called - 60 * it)
        found.call(key(number), called)
    return found


def test_a_range_leaves_out_one_wait_in_ten_on_either_side():
    assert waited(1, *range(10, 19), 500).usual(A100, NOW) == UsualWait(10, 18, 1)


@given(st.lists(st.floats(0, 10_000), min_size=LEAST_WAITS, max_size=60))
def test_eight_of_ten_waits_are_in_the_range(minutes):
    usual = waited(*minutes).usual(A100, NOW)

    assert usual is not None
    assert 0 <= usual.low < usual.high
    inside = sum(usual.low - 0.001 <= it <= usual.high + 0.001 for it in minutes)  # rounded times
    assert inside >= 0.8 * len(minutes) - 2


def test_who_goes_on_waiting_after_a_start_that_failed_counts_once():
    waits = Waits()
    for again in range(LEAST_WAITS + 1):
        waits.join(key("ann"), A100, NOW - 600)
        waits.call(key("ann"), NOW + again)

    assert waits.usual(A100, NOW) is None
    assert waited(*[10] * LEAST_WAITS, to=waits).usual(A100, NOW + 60) == UsualWait(10, 11, 1)


def test_nothing_is_told_of_what_few_have_waited_for():
    waits = waited(*range(LEAST_WAITS - 1))
    waited(*range(50), kind=T4, to=waits)

    assert waits.usual(A100, NOW) is None


def test_nothing_is_told_while_somebody_waits_for_longer_than_that():
    waits = waited(*[10] * 20)
    waits.join(key("long"), T4, NOW - 3600)
    waits.join(key("ann"), A100, NOW - 600)
    assert waits.usual(A100, NOW) == UsualWait(10, 11, 1)
    assert waits.usual(A100, NOW + 61) is None

    waits.leave(key("ann"))

    assert waits.usual(A100, NOW + 122) == UsualWait(10, 11, 1)


def test_who_leaves_or_never_joined_doesnt_count():
    waits = waited(*[10] * (LEAST_WAITS - 1))
    waits.join(key("ann"), A100, NOW)
    waits.leave(key("ann"))
    for it in ("ann", "bob"):
        waits.call(key(it), NOW)
        waits.leave(key(it))

    assert waits.usual(A100, NOW) is None


@pytest.mark.parametrize(("ago", "days"), [(0, 1), (DAY, 1), (1.5 * DAY, 2), (30 * DAY, 30)])
def test_the_days_reach_back_to_the_first_wait_that_counts(ago, days):
    waits = waited(5, called=NOW - 31 * DAY)
    waited(20, called=NOW - ago, to=waits)
    waited(*[20] * 20, to=waits)

    assert waits.usual(A100, NOW) == UsualWait(20, 21, days)


def test_only_the_last_waits_and_kinds_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "_KINDS", 2)
    waits = waited(*[5] * module._KEPT, *[50] * module._KEPT)
    assert waits.usual(A100, NOW) == UsualWait(50, 51, 1)

    for it in range(2):
        waited(*[5] * 20, kind=it, to=waits)

    assert waits.usual(A100, NOW + 31) is None
    assert waits.usual(0, NOW) == UsualWait(5, 6, 1)


def test_what_is_told_is_found_once_for_all_who_wait_for_the_same():
    waits = waited(*[10] * 20)
    assert waits.usual(A100, NOW) == UsualWait(10, 11, 1)
    waited(*[50] * 1000, to=waits)

    assert waits.usual(A100, NOW + 29) == UsualWait(10, 11, 1)
    assert waits.usual(A100, NOW + 30) == UsualWait(50, 51, 1)
    assert waits.usual(A100, NOW - 30) == UsualWait(50, 51, 1)


def test_a_clock_that_was_set_back_makes_no_negative_wait():
    assert waited(*[-10] * 20).usual(A100, NOW - DAY) == UsualWait(0, 1, 1)
