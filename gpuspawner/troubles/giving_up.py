"""When a start is given up: a trouble that can't pass, or a phase that takes too long.

The hub's own clock measures this: the cluster's clocks may differ from it, and events come late.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from gpuspawner.troubles.steps import Place, Stage, Step
from gpuspawner.troubles.trouble import Kind, Trouble


class StartPhase(StrEnum):
    """A part of a start that has a limit of its own."""

    QUEUED = "queued"
    """Until Kueue has given the pod its quota."""
    SCHEDULED = "scheduled"
    """Until the pod has a node."""
    PREPARED = "prepared"
    """Until the volumes and the images are there."""
    STARTED = "started"
    """Until all containers are ready."""
    ANSWERED = "answered"
    """Until the server accepts connections."""


_PHASES = {
    Step.QUEUED: StartPhase.QUEUED,
    Step.SCHEDULING: StartPhase.SCHEDULED,
    Step.NODE_STARTING: StartPhase.SCHEDULED,
    Step.NODE_FOUND: StartPhase.PREPARED,
    Step.VOLUMES: StartPhase.PREPARED,
    Step.PULLING: StartPhase.PREPARED,
    Step.INITIALIZING: StartPhase.STARTED,
    Step.STARTING: StartPhase.STARTED,
    Step.RUNNING: StartPhase.STARTED,
}

_ATTEMPTS = {Kind.CRASHED: 3, Kind.OUT_OF_MEMORY: 2, Kind.ENDED: 3}
"""How often something may go wrong that the kubelet tries again."""
_LEAST_SECONDS = {Kind.CRASHED: 10.0, Kind.ENDED: 10.0}
"""How long it is tried at least: kubelets may be set to wait only a second between two tries."""
TRIED_AGAIN = frozenset(_ATTEMPTS)
"""What seems to be over during each new try."""
_SECONDS = {
    Kind.IMAGE_FORBIDDEN: 30.0,
    Kind.IMAGE_NEVER_PULLED: 300.0,
    Kind.SECRET_MISSING: 30.0,
    Kind.CONFIG_MAP_MISSING: 30.0,
    Kind.KEY_MISSING: 30.0,
    Kind.CLAIM_MISSING: 30.0,
    Kind.CONTAINER_CONFIG: 30.0,
    Kind.GPU_DRIVER: 60.0,
    Kind.NODE_SOFTWARE: 60.0,
    Kind.RUNTIME: 120.0,
    Kind.NODE_LOST: 60.0,
    Kind.QUEUE_SILENT: 120.0,
}
"""How long something may last that somebody may still create, or that a new node may still get."""


class GivenUp(msgspec.Struct, frozen=True):
    """Why a start is given up.

    Attributes:
        cause: What goes wrong; None if nothing is known to.
        late: The phase that took too long; None if the cause can't pass.
    """

    cause: Trouble | None = None
    late: StartPhase | None = None


def phase(stages: Iterable[Stage]) -> StartPhase:
    """Return the phase of a start."""
    last = Step.SCHEDULING
    for stage in stages:
        last = stage.step
    return _PHASES[last]


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

    def seconds(self) -> dict[str, float]:
        """Return for how long the start has been in each phase that it has reached."""
        return {it.value: self.in_phase(it) for it in self._phases}

    def in_stage(self, stage: Stage) -> float:
        """Return for how long the start has been in a stage."""
        return self._now - self._stages.get((stage.step, stage.place), self._now)

    def lasting(self) -> dict[Kind, float]:
        """Return for how long each present kind of trouble has been seen without a break.

        A try after a crash is no break: the container runs, and may crash again.
        """
        return {kind: self._now - since for kind, since in self._troubles.items()}


def hopeless(troubles: Iterable[Trouble], lasting: Mapping[Kind, float]) -> GivenUp | None:
    """Return the first trouble that can't pass, or has had its chance.

    Args:
        troubles: Those that end the start first.
        lasting: For how many seconds each kind has been seen, as `Course.lasting` counts them.
    """
    for it in troubles:
        if it.is_over:
            continue
        if it.is_final or _had_its_chance(it, lasting.get(it.kind, 0.0)):
            return GivenUp(it)
    return None


def _had_its_chance(it: Trouble, seconds: float) -> bool:
    often = it.attempts >= _ATTEMPTS.get(it.kind, it.attempts + 1)
    is_tried = often and seconds >= _LEAST_SECONDS.get(it.kind, 0.0)
    return is_tried or seconds >= _SECONDS.get(it.kind, float("inf"))


def late(troubles: Iterable[Trouble], at: StartPhase) -> GivenUp:
    """Return the failure of a phase that took too long, with what goes wrong in it.

    A server that doesn't answer may just run again, only to crash again. A warning in unknown words
    says less than that.
    """

    def may_be_why(it: Trouble) -> bool:
        return not it.is_over or (at is StartPhase.ANSWERED and it.exit is not None)

    causes = filter(may_be_why, troubles)
    return GivenUp(min(causes, key=lambda it: it.kind is Kind.UNKNOWN, default=None), at)
