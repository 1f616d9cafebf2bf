"""How long servers last."""

from __future__ import annotations

import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.line.survival import Survival

TIMES = st.lists(st.integers(0, 50).map(float), max_size=20)
RUNS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 50), st.booleans()).map(
        lambda it: (float(it[0]), float(it[0] + it[1]), it[2])
    ),
    max_size=20,
)
"""The age at which each was first seen, how long it lasted or has lasted, and whether it ended."""


def test_the_worked_example_of_kaplan_and_meier() -> None:
    survival = Survival.of([0.8, 3.1, 5.4, 9.2], [1.0, 2.7, 7.0, 12.1])

    assert survival.times == (0.8, 3.1, 5.4, 9.2)
    assert survival.shares == pytest.approx((7 / 8, 7 / 10, 21 / 40, 21 / 80))


def test_servers_that_still_run_count_for_as_long_as_they_have() -> None:
    assert Survival.of([10.0], [60.0] * 9).beyond(10) == 0.9


def test_servers_count_only_from_the_age_at_which_they_were_first_seen() -> None:
    survival = Survival.of([10.0, 30.0], [60.0] * 9, late=[20.0] * 6)

    assert survival.shares == pytest.approx((4 / 5, 4 / 5 * 9 / 10))


def test_who_is_first_seen_at_the_age_at_which_another_ends_wasnt_at_risk() -> None:
    assert Survival.of([10.0], [60.0] * 9, late=[10.0] * 5).beyond(10) == 4 / 5


def test_one_early_end_doesnt_say_that_nobody_lasts() -> None:
    survival = Survival.of([1.0, 30.0], [60.0] * 9, late=[20.0] * 10)

    assert survival.beyond(1) == pytest.approx(exp(-1))
    assert survival.ends_within(30, 25) == pytest.approx(1 / 10)


def test_if_the_oldest_of_all_has_ended_nobody_lasts_longer() -> None:
    assert Survival.of([10.0, 60.0], [30.0], late=[20.0]).beyond(60) == 0


def test_servers_that_were_older_than_the_hub_dont_make_others_seem_to_last() -> None:
    """They end at the same rate at each age, with a mean of 100, as seen for a tenth of that."""
    dice, seen = random.Random(3), 10.0
    ended, running, late = [], [], []
    for _ in range(20_000):
        began, lasts = -dice.uniform(0, 200), dice.expovariate(1 / 100)
        if began + lasts > 0:  # else it had ended before
            late.append(-began)
            (ended if began + lasts <= seen else running).append(min(lasts, seen - began))

    survival = Survival.of(ended, running, late)

    shares = [survival.ends_within(10, age) for age in range(20, 110, 10)]
    assert shares == pytest.approx([1 - exp(-0.1)] * 9, abs=0.04)


def test_nobody_knows_when_a_server_ends_that_is_older_than_all_that_have_ended() -> None:
    assert Survival.of([10.0]).ends_within(1000, 20) == 0
    assert Survival().ends_within(1000, 0) == 0


def test_a_server_of_an_age_is_compared_with_those_that_have_become_as_old() -> None:
    assert Survival.of([10.0, 20.0, 30.0, 40.0]).ends_within(10, 20) == 0.5


@given(TIMES, TIMES)
def test_shares_never_rise_and_stay_shares(ended, running) -> None:
    survival = Survival.of(ended, running)

    shares = (1.0, *survival.shares)
    assert list(shares) == sorted(shares, reverse=True)
    assert all(-1e-9 <= it <= 1 for it in shares)
    assert all(0 <= survival.ends_within(t, 5) <= 1 for t in range(60))


@given(RUNS)
def test_shares_stay_shares_if_some_were_first_seen_late(runs) -> None:
    survival = Survival.of(
        [until for _, until, has_ended in runs if has_ended],
        [until for _, until, has_ended in runs if not has_ended],
        [entry for entry, _, _ in runs if entry],
    )

    shares = (1.0, *survival.shares)
    assert list(shares) == sorted(shares, reverse=True)
    assert all(0 <= it <= 1 for it in shares)
    assert all(survival.beyond(entry) > 0 for entry, _, _ in runs)


@given(TIMES)
def test_without_running_servers_it_is_the_share_itself(ended) -> None:
    survival = Survival.of(ended)
    for time in ended:
        share = sum(it > time for it in ended) / len(ended)
        assert survival.beyond(time) == pytest.approx(share)
