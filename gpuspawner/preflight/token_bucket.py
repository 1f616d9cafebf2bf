"""A rate limit."""

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns the time in seconds."""


class TokenBucket:
    """A token bucket; full at first.

    Args:
        a_second: How many tokens it gains a second.
        most: How many tokens it can hold.
        clock: Returns the time in seconds.
    """

    def __init__(self, a_second: float, most: int, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._a_second = a_second
        self._most = most
        self._left = float(most)
        self._since = self._clock()

    def take(self, leaving: float = 0) -> bool:
        """Take a token if at least *leaving* remain after that; return whether it was taken."""
        self._refill()
        if self._left < leaving + 1:
            return False
        self._left -= 1
        return True

    def is_full(self) -> bool:
        """Whether the bucket holds as many tokens as it can."""
        self._refill()
        return self._left >= self._most

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._a_second)
        self._since = now
