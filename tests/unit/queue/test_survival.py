"""How long servers last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.queue.survival import Survival

TIMES = st.lists(st.integers(0, 50).map(float), max_size=20)


def test_the_worked_example_of_kaplan_and_meier() -> None:
    survival = Survival.of([0.8, 3.1, 5.4, 9.2], [1.0, 2.7, 7.0, 12.1])

    assert survival.times == (0.8, 3.1, 5.4, 9.2)
    assert survival.shares == pytest.approx((7 / 8, 7 / 10, 21 / 40, 21 / 80))


def test_servers_that_still_run_count_for_as_long_as_they_have() -> None:
    assert Survival.of([10.0], [60.0] * 9).beyond(10) == 0.9


def test_nobody_knows_when_a_server_ends_that_is_older_than_all_that_have_ended() -> None:
    assert Survival.of([10.0]).ends_within(1000, 20) == 0
    assert Survival().ends_within(1000, 0) == 0


def test_a_server_of_an_age_is_compared_with_those_that_have_become_as_old() -> None:
    assert Survival.of([10.0, 20.0, 30.0, 40.0]).ends_within(10, 20) == 0.5


@given(TIMES, TIMES)
def test_shares_never_rise_and_stay_shares(ended: list[float], running: list[float]) -> None:
    survival = Survival.of(ended, running)

    shares = (1.0, *survival.shares)
    assert list(shares) == sorted(shares, reverse=True)
    assert all(-1e-9 <= it <= 1 for it in shares)
    assert all(0 <= survival.ends_within(t, 5) <= 1 for t in range(60))


@given(TIMES)
def test_without_running_servers_it_is_the_share_itself(ended: list[float]) -> None:
    survival = Survival.of(ended)
    for time in ended:
        share = sum(it > time for it in ended) / len(ended)
        assert survival.beyond(time) == pytest.approx(share)
