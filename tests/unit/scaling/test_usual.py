"""The measured times until a new node runs a pod."""

from __future__ import annotations

import pytest

from gpuspawner.scaling.usual import _MOST, UsualTimes


def test_only_the_pools_that_have_grown_last_are_remembered() -> None:
    usual = UsualTimes[str]()
    for number in range(_MOST + 1):
        usual.took("", 60)
        usual.took(f"pool-{number}", 120)

    assert usual.minutes("pool-0") is None
    assert usual.minutes("") == 1
    assert usual.minutes(f"pool-{_MOST}") == 2


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_a_time_that_cannot_be_is_ignored(seconds: float) -> None:
    usual = UsualTimes[str]()
    usual.took("gpu", 60)
    usual.took("gpu", seconds)

    assert usual.seconds("gpu") == 60
