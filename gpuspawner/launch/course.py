"""How long each phase and stage of a start has lasted, and how long each trouble has.

The hub's own clock measures this: the cluster's clocks may differ from it, and events come late.
"""

from collections.abc import Sequence

from gpuspawner.launch.limits import TRIED_AGAIN, Phase, phase
from gpuspawner.launch.steps import Place, Stage, Step
from gpuspawner.launch.trouble import Kind, Trouble


class Course:
    """The times of one start, in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._phases: dict[Phase, float] = {}
        self._phase: Phase | None = None
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

    def in_phase(self, phase: Phase) -> float:
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
