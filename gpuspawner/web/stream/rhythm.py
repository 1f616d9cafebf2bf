"""When the hub looks at the cluster for open forms: at once after a quiet time, then seldom."""

import math
import time

from gpuspawner.preflight.token_bucket import Clock

LEAST_REST, MOST_REST = 0.5, 0.8
"""Seconds between a look and the next one, whatever changes meanwhile. A change is shown within a
second, so the rest is no longer."""
SHARE = 1 / 20
"""How much of a core looks may take, as long as their rest isn't the longest."""
AT_LEAST_EVERY = 5.0
"""Seconds between looks if nobody tells of a change: some things change by time alone."""


class Rhythm:
    """Says when to look next."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._rested_at = self._again_at = clock()
        self._is_noted = False
        self._wished_at = math.inf

    def note(self) -> bool:
        """Note a change; return whether it is the first one since the last look."""
        is_first, self._is_noted = not self._is_noted, True
        return is_first

    def begin(self) -> None:
        """Note that a look begins: it sees all changes until now."""
        self._is_noted = False
        self._wished_at = math.inf

    def wish(self, at: float) -> None:
        """Ask for a look at a time of the clock, if none comes before."""
        self._wished_at = min(self._wished_at, at)

    def end(self, seconds: float) -> None:
        """Note that a look has ended, which took so much processor time."""
        now = self._clock()
        self._rested_at = now + min(MOST_REST, max(LEAST_REST, seconds / SHARE))
        self._again_at = now + AT_LEAST_EVERY

    def due(self) -> float:
        """Return in how many seconds the next look is due; 0 for now."""
        wished = max(self._rested_at, self._wished_at)
        at = self._rested_at if self._is_noted else min(self._again_at, wished)
        return max(0.0, at - self._clock())
