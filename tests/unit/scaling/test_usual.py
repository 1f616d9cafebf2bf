"""The measured times until a new node runs a pod."""

from __future__ import annotations

from gpuspawner.scaling.usual import _MOST_POOLS, UsualTimes


def test_only_the_pools_that_have_grown_last_are_remembered() -> None:
    usual = UsualTimes()
    for number in range(_MOST_POOLS + 1):
        usual.took("", 60)
        usual.took(f"pool-{number}", 120)

    assert usual.minutes("pool-0") is None
    assert usual.minutes("") == 1
    assert usual.minutes(f"pool-{_MOST_POOLS}") == 2
