"""The usual time that something takes, measured, and how long a start waits for a node."""

import math
from collections import deque
from collections.abc import Hashable
from statistics import median
from typing import Generic, TypeVar

from gpuspawner.kube.caches import Recent
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp

TRIAL_SECONDS = 60.0
"""How long a pod may be pending before an autoscaler has reacted to it."""

# Cluster Autoscaler and Karpenter give a node up after 15 minutes. The usual time is no limit: a
# pod that found a node on its way has waited less than the next one may have to.
LEAST_MINUTES = 20.0

_LAST = 9
_MOST = 256

_Key = TypeVar("_Key", bound=Hashable)


class UsualTimes(Generic[_Key]):
    """The median of the last times, by what decides about them: a node's pool, for example."""

    def __init__(self) -> None:
        self._taken = Recent[_Key, deque[float]](_MOST)

    def took(self, key: _Key, seconds: float) -> None:
        """Note that it took so many seconds. Clocks that disagree make a time that is ignored."""
        if not math.isfinite(seconds) or seconds < 0:
            return
        self._taken.of(key, lambda: deque(maxlen=_LAST)).append(seconds)

    def seconds(self, key: _Key) -> float | None:
        """Return the usual time in seconds; None if it has never been measured."""
        taken = self._taken.get(key)
        return median(taken) if taken else None

    def minutes(self, key: _Key) -> float | None:
        """Return the usual time in minutes; None if it has never been measured."""
        usual = self.seconds(key)
        return None if usual is None else usual / 60


def longest_wait(scale_up: CanScaleUp | MayScaleUp | None) -> float:
    """Return how many seconds a start may wait for its node; None if nobody knows its pool.

    Twice the usual time, but no less than `LEAST_MINUTES`, and a minute for the pod to get there.
    """
    usual = scale_up.minutes if scale_up is not None else None
    return 60 * max(LEAST_MINUTES, 2 * (usual or 0)) + TRIAL_SECONDS
