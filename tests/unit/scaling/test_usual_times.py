"""The measured times until a new node runs a pod, and how long a start waits for one."""

from __future__ import annotations

import pytest

from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Source
from gpuspawner.scaling.usual_times import _MOST, TRIAL_SECONDS, UsualTimes, longest_wait


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


@pytest.mark.parametrize(
    ("scale_up", "minutes"),
    [
        (CanScaleUp(0, 1, 15), 30),
        (CanScaleUp(0, 1, 0.2), 20),
        (MayScaleUp(Source.NODES), 20),
    ],
)
def test_the_longest_wait_is_twice_the_usual_time_but_at_least_twenty_minutes(
    scale_up, minutes
) -> None:
    """A node that others awaited for seconds may take minutes the next time."""
    assert longest_wait(scale_up) == minutes * 60 + TRIAL_SECONDS
