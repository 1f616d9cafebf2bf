"""The usual time that something takes, measured."""

import math
from collections import deque
from collections.abc import Hashable
from statistics import median
from typing import Generic, TypeVar

from gpuspawner.kube.recent import Recent

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
        taken = self._taken.get(key) or deque(maxlen=_LAST)
        taken.append(seconds)
        self._taken[key] = taken

    def seconds(self, key: _Key) -> float | None:
        """Return the usual time in seconds; None if it has never been measured."""
        taken = self._taken.get(key)
        return median(taken) if taken else None

    def minutes(self, key: _Key) -> float | None:
        """Return the usual time in minutes; None if it has never been measured."""
        usual = self.seconds(key)
        return None if usual is None else usual / 60
