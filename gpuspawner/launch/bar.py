"""How far a start's progress bar is: each step takes the part of the bar that its usual time is."""

import math
from collections.abc import Callable, Iterable

from gpuspawner.launch.steps import Stage, Step

_FIRST, _MOST = 5, 95
"""The bar's ends in percent: the hub itself says 0 and 100."""

_GUESSES = {
    Step.QUEUED: 2.0,
    Step.SCHEDULING: 2.0,
    Step.NODE_STARTING: 240.0,
    Step.NODE_FOUND: 2.0,
    Step.VOLUMES: 5.0,
    Step.PULLING: 30.0,
    Step.INITIALIZING: 5.0,
    Step.STARTING: 5.0,
    Step.RUNNING: 10.0,
}
"""The seconds of a step that hasn't been measured yet."""
_LONGEST = 86400.0
"""In seconds; longer times could add up to infinity."""
_ALWAYS = (Step.SCHEDULING, Step.NODE_FOUND, Step.PULLING, Step.STARTING, Step.RUNNING)


def percent(stages: Iterable[Stage], elapsed: float, usual: Callable[[Stage], float | None]) -> int:
    """Return how much of the bar is done.

    Args:
        stages: Those that the start has reached, in order.
        elapsed: How long it has been in the last one, in seconds.
        usual: Returns how long a stage usually takes, in seconds.
    """
    reached = tuple(stages)
    if not reached:
        return _FIRST
    takes = [_seconds(stage, usual) for stage in reached]
    here = takes[-1]
    done = sum(takes[:-1]) + here * (1 - math.exp(-max(elapsed, 0) / here))
    last = list(Step).index(reached[-1].step)
    ahead = sum(_GUESSES[step] for step in _ALWAYS if list(Step).index(step) > last)
    return int(_FIRST + (_MOST - _FIRST) * done / (sum(takes) + ahead))


def _seconds(stage: Stage, usual: Callable[[Stage], float | None]) -> float:
    return min(max(0.1, usual(stage) or _GUESSES[stage.step]), _LONGEST)
