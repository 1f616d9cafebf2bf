"""Limits on questions per user, so that a script in a loop doesn't slow the hub for others."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gpuspawner.preflight.token_bucket import Clock, TokenBucket

MOST_AT_ONCE = 4
"""Questions per user being answered at once; a form that changes quickly has two."""
A_SECOND, SAVED_UP = 4.0, 40
"""Questions per user: a second, and saved up. A user may have a dozen forms or a script open."""


class TooManyQuestionsError(Exception):
    """There are too many questions about this user's servers right now."""


class Questions:
    """Counts questions by the user whose servers they are about."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._now = Counter[str]()
        self._buckets: dict[str, TokenBucket] = {}

    @contextmanager
    def counted(self, person: str) -> Iterator[None]:
        """Count a question while the block runs.

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

    def _bucket(self, person: str) -> TokenBucket:
        if person not in self._buckets:
            # A full bucket is the same as a new one, so it needn't be kept.
            self._buckets = {name: it for name, it in self._buckets.items() if not it.is_full()}
            self._buckets[person] = TokenBucket(A_SECOND, SAVED_UP, self._clock)
        return self._buckets[person]
