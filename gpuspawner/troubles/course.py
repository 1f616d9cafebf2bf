"""How long each phase, stage and trouble of a start has lasted, and what a page makes of that.

The hub's own clock measures this: the cluster's clocks may differ from it, and events come late.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from gpuspawner.troubles.limits import TRIED_AGAIN, StartPhase, phase
from gpuspawner.troubles.steps import Place, Stage, Step
from gpuspawner.troubles.trouble import Kind, Trouble


class Course:
    """The times of one start, in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._phases: dict[StartPhase, float] = {}
        self._phase: StartPhase | None = None
        self._stages: dict[tuple[Step, Place], float] = {}
        self._troubles: dict[Kind, float] = {}
        self._now = 0.0

    def note(self, stages: Sequence[Stage], troubles: Sequence[Trouble], now: float) -> None:
        """Note how far the start is at this moment; there is at least one stage."""
        last = stages[-1]
        if self._phase is not None:
            self._phases[self._phase] = self.in_phase(self._phase) + now - self._now
        self._phase, self._now = phase(stages), now
        self._stages.setdefault((last.step, last.place), now)
        present = {it.kind for it in troubles if not it.is_over or it.kind in TRIED_AGAIN}
        self._troubles = {it: self._troubles.get(it, now) for it in present}

    def in_phase(self, phase: StartPhase) -> float:
        """Return for how long the start has been in a phase altogether.

        Each container has its own pull and its own start, so the phases take turns: the first one's
        start must not count while the image of the second is pulled.
        """
        return self._phases.get(phase, 0.0)

    def in_stage(self, stage: Stage) -> float:
        """Return for how long the start has been in a stage."""
        return self._now - self._stages.get((stage.step, stage.place), self._now)

    def lasting(self) -> dict[Kind, float]:
        """Return for how long each present kind of trouble has been seen without a break.

        A try after a crash is no break: the container runs, and may crash again.
        """
        return {kind: self._now - since for kind, since in self._troubles.items()}


# When a page says again how long a start waits: often at first, so that nobody thinks it is stuck.
#
# A page that opens late reads all that was told, so the last mark is never much older than the
# wait.

_FIRST = (30, 60, 120, 180)
_THEN = 300
"""Each of these, in seconds."""


def last_mark(elapsed: float) -> int:
    """Return the last mark that has passed, in seconds; 0 before the first one."""
    regular = int(elapsed // _THEN) * _THEN
    return max((regular, *(it for it in _FIRST if it <= elapsed)))


# How far a start's progress bar is: each step takes the part of the bar that its usual time is.

_LEAST_PERCENT, _MOST_PERCENT = 5, 95
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
        return _LEAST_PERCENT
    takes = [_seconds(stage, usual) for stage in reached]
    here = takes[-1]
    done = sum(takes[:-1]) + here * (1 - math.exp(-max(elapsed, 0) / here))
    last = list(Step).index(reached[-1].step)
    ahead = sum(_GUESSES[step] for step in _ALWAYS if list(Step).index(step) > last)
    return int(_LEAST_PERCENT + (_MOST_PERCENT - _LEAST_PERCENT) * done / (sum(takes) + ahead))


def _seconds(stage: Stage, usual: Callable[[Stage], float | None]) -> float:
    return min(max(0.1, usual(stage) or _GUESSES[stage.step]), _LONGEST)
