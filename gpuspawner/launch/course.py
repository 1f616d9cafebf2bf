"""For how long a start has been where it is, and what goes wrong has lasted.

The hub's own clock measures this: the cluster's clocks may differ from it, and events come late.
"""

from collections.abc import Sequence

from gpuspawner.launch.limits import Phase, phase
from gpuspawner.launch.steps import Place, Stage, Step
from gpuspawner.launch.trouble import Kind, Trouble


class Course:
    """The times of one start, in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._phases: dict[Phase, float] = {}
        self._stages: dict[tuple[Step, Place], float] = {}
        self._troubles: dict[Kind, float] = {}
        self._now = 0.0

    def note(self, stages: Sequence[Stage], troubles: Sequence[Trouble], now: float) -> None:
        """Note how far the start is at this moment; there is at least one stage."""
        last = stages[-1]
        self._now = now
        self._phases.setdefault(phase(stages), now)
        self._stages.setdefault((last.step, last.place), now)
        present = {it.kind for it in troubles if not it.is_over}
        self._troubles = {it: self._troubles.get(it, now) for it in present}

    def in_phase(self, phase: Phase) -> float:
        """Return for how long the start has been in a phase, from its first moment there."""
        return self._now - self._phases.get(phase, self._now)

    def in_stage(self, stage: Stage) -> float:
        """Return for how long the start has been in a stage."""
        return self._now - self._stages.get((stage.step, stage.place), self._now)

    def lasting(self) -> dict[Kind, float]:
        """Return for how long each present kind of trouble has been seen without a break."""
        return {kind: self._now - since for kind, since in self._troubles.items()}
