"""The usual time until a new node runs a pod, measured."""

from collections import deque
from statistics import median

_LAST = 9
_MOST_POOLS = 256


class UsualTimes:
    """The median of the last times, by pool."""

    def __init__(self) -> None:
        self._taken: dict[str, deque[float]] = {}

    def took(self, pool: str, seconds: float) -> None:
        """Note that a pod waited so many seconds for a node of this pool."""
        taken = self._taken.pop(pool, None) or deque(maxlen=_LAST)
        if len(self._taken) >= _MOST_POOLS:
            del self._taken[next(iter(self._taken))]
        taken.append(seconds)
        self._taken[pool] = taken

    def minutes(self, pool: str) -> float | None:
        """Return the usual time in minutes; None if no pod has waited for a node of the pool."""
        taken = self._taken.get(pool)
        return median(taken) / 60 if taken else None
