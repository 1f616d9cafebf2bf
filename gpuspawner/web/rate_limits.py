"""How many questions a user may ask at once and in a second: more get HTTP 429.

These are limits per user, so that a script in a loop doesn't slow the hub for others.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from tornado import web

from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.token_bucket import Clock, TokenBucket

MOST_AT_ONCE = 4
"""Questions per user being answered at once; a form that changes quickly has two."""
A_SECOND, SAVED_UP = 4.0, 40
"""Questions per user: a second, and saved up. A user may have a dozen forms or a script open."""

RETRY_AFTER = 10
"""Seconds to wait after a 429 before asking again; an open form waits as long."""
PAUSE = 8.0
"""Seconds before the hub sends a 429, to slow down programs that ask again at once."""


class TooManyQuestions(web.HTTPError):
    """HTTP 429 with the header ``Retry-After``; the hub sends an error's headers."""

    def __init__(self) -> None:
        super().__init__(429, "Too many requests right now")
        self.headers = {"Retry-After": str(RETRY_AFTER)}


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
            TooManyQuestions: There are too many already.
        """
        if self._now[person] >= MOST_AT_ONCE or not self._bucket(person).take():
            raise TooManyQuestions
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


@asynccontextmanager
async def counted(questions: Questions, owner: str) -> AsyncIterator[None]:
    """Count a question about this owner's servers, or answer 429 if there are too many."""
    try:
        with questions.counted(owner):
            yield
    except (TooManyQuestions, TooManyDryRunsError):
        await asyncio.sleep(PAUSE)
        raise TooManyQuestions from None
