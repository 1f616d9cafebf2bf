"""How often something may happen: so many times a second, with some saved up."""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""What tells the time, in seconds."""


class Bucket:
    """Turns that come back with time, and are saved up to a number; full at first.

    Args:
        a_second: How many come back a second.
        most: How many can be saved up.
        clock: What tells the time, in seconds.
    """

    def __init__(self, a_second: float, most: int, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._a_second = a_second
        self._most = most
        self._left = float(most)
        self._since = self._clock()

    def take(self, leaving: float = 0) -> bool:
        """Take one if at least *leaving* remain; tell whether one was taken."""
        self._refill()
        if self._left < leaving + 1:
            return False
        self._left -= 1
        return True

    def is_full(self) -> bool:
        """Whether there are as many as can be saved up."""
        self._refill()
        return self._left >= self._most

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._a_second)
        self._since = now
