"""Wakes the watchers of one API server once it is back."""

import math
import time

from gpuspawner.cluster.changes import Changes

# Seconds. If answers and failures alternate, as behind a load balancer with a backend that is away,
# each answer would let all watchers ask again at once.
_BETWEEN_WAKES = 8.0


class Contact:
    """What the watchers of one API server share.

    The first of them that is answered after an outage wakes the others: their own waits may still
    be long.

    Attributes:
        wakes: How often they were woken so far.
    """

    def __init__(self) -> None:
        self.wakes = 0
        self._woken = -math.inf
        self._changes = Changes()

    def wake(self) -> None:
        """Let all that wait ask again, unless they have just been woken."""
        now = time.monotonic()
        if now - self._woken >= _BETWEEN_WAKES:
            self._woken = now
            self.wakes += 1
            self._changes.tell()

    async def wait(self, wakes: int, seconds: float) -> None:
        """Wait for so many seconds, or until there have been more than so many wakes."""
        if self.wakes <= wakes:
            await self._changes.next(seconds)
