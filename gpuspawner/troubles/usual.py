"""How long each step of earlier starts took, by what decides about its length."""

from collections.abc import Sequence
from itertools import pairwise

from gpuspawner.scaling.usual_times import UsualTimes
from gpuspawner.troubles.pulls import Pulled
from gpuspawner.troubles.steps import Stage, Step

_LONGEST = 512
"""In characters: users may choose names of images."""


class UsualSteps:
    """The usual times of steps, in this process."""

    def __init__(self) -> None:
        self._times = UsualTimes[tuple[Step, str]]()

    def learn(self, stages: Sequence[Stage]) -> None:
        """Note how long each stage took that has ended, if its times are known."""
        for stage, following in pairwise(stages):
            took = _seconds(stage, following)
            if took is not None:
                self._times.took(_key(stage), took)

    def seconds(self, stage: Stage) -> float | None:
        """Return how long such a stage usually takes; None if none has been seen to end."""
        return self._times.seconds(_key(stage))


def _seconds(stage: Stage, following: Stage) -> float | None:
    if isinstance(stage.image, Pulled):
        # An image that was there has no times, and says nothing of the next pull.
        return stage.image.with_waiting or stage.image.seconds
    if stage.since is None or following.since is None:
        return None
    return (following.since - stage.since).total_seconds()


def _key(stage: Stage) -> tuple[Step, str]:
    match stage.step:
        case Step.PULLING | Step.INITIALIZING | Step.STARTING:
            decides = stage.image.image if stage.image else stage.subject
        case Step.NODE_STARTING:
            decides = stage.subject
        case _:
            decides = ""
    return stage.step, decides[:_LONGEST]
