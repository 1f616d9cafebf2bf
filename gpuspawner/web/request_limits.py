"""Limits on one person's questions, so that a script in a loop does not slow the hub for others."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gpuspawner.rate_limit import Bucket, Clock

MOST_AT_ONCE = 4
"""Of one person; a form that is quick to change has two."""
A_SECOND, SAVED_UP = 4.0, 40
"""Of one person, who may have a dozen forms open, or a script that asks about every choice."""


class TooManyQuestionsError(Exception):
    """This person asks too much at this moment."""


class Questions:
    """Counts questions by the person whose servers they are about.

    Args:
        clock: What tells the time, in seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._now = Counter[str]()
        self._buckets: dict[str, Bucket] = {}

    @contextmanager
    def counted(self, person: str) -> Iterator[None]:
        """Count one for as long as the block takes.

        Raises:
            TooManyQuestionsError: There are too many already.
        """
        if self._now[person] >= MOST_AT_ONCE or not self._bucket(person).take():
            raise TooManyQuestionsError
        self._now[person] += 1
        try:
            yield
        finally:
            self._now[person] -= 1
            if not self._now[person]:
                del self._now[person]

    def _bucket(self, person: str) -> Bucket:
        if person not in self._buckets:
            # Who has not asked for a while may ask as much as who never did.
            self._buckets = {name: it for name, it in self._buckets.items() if not it.is_full()}
            self._buckets[person] = Bucket(A_SECOND, SAVED_UP, self._clock)
        return self._buckets[person]
