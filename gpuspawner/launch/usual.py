"""How long each step of earlier starts took, by what decides about its length."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpuspawner.launch.pulls import Pulled
from gpuspawner.launch.steps import Stage, Step
from gpuspawner.scaling.usual import UsualTimes

_LONGEST = 512
"""In characters: users may choose names of images."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """What decides how long a start's steps take; each part is "" if it isn't known.

    Attributes:
        pool: The pool of the node, as its autoscaler names it.
        storage_class: Of the pod's volumes.
    """

    pool: str = ""
    storage_class: str = ""


class UsualSteps:
    """The usual times of steps, in this process."""

    def __init__(self) -> None:
        self._times = UsualTimes[tuple[Step, str]]()

    def learn(self, stages: Sequence[Stage], deciding: Deciding) -> None:
        """Note how long each stage took that has ended, if its times are known."""
        for stage, following in pairwise(stages):
            took = _seconds(stage, following)
            if took is not None:
                self._times.took(_key(stage, deciding), took)

    def seconds(self, stage: Stage, deciding: Deciding) -> float | None:
        """Return how long such a stage usually takes; None if none has been seen to end."""
        return self._times.seconds(_key(stage, deciding))


def _seconds(stage: Stage, following: Stage) -> float | None:
    if isinstance(stage.image, Pulled):
        # An image that was there has no times, and says nothing of the next pull.
        return stage.image.with_waiting or stage.image.seconds
    if stage.since is None or following.since is None:
        return None
    return (following.since - stage.since).total_seconds()


def _key(stage: Stage, deciding: Deciding) -> tuple[Step, str]:
    match stage.step:
        case Step.PULLING | Step.INITIALIZING | Step.STARTING:
            decides = stage.image.image if stage.image else stage.subject
        case Step.NODE_STARTING:
            decides = deciding.pool or stage.subject
        case Step.VOLUMES:
            decides = deciding.storage_class
        case _:
            decides = ""
    return stage.step, decides[:_LONGEST]
