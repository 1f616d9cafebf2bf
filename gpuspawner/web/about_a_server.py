"""What the handlers share that answer questions about one server."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from jupyterhub.apihandlers import APIHandler
from jupyterhub.user import User
from tornado import web

from gpuspawner.gates.sources import Sources
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.token_bucket import Clock, TokenBucket
from gpuspawner.start.host import set_locale

# Limits on questions per user, so that a script in a loop doesn't slow the hub for others.

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


class Answering(APIHandler):  # type: ignore[misc]
    """Sends data, which is only valid now, and never a page or a script."""

    def set_default_headers(self) -> None:
        """Let no browser guess another type than the answer's own, also not of an error."""
        super().set_default_headers()
        self.set_header("X-Content-Type-Options", "nosniff")

    def answer(self, found: dict[str, object]) -> None:
        """Send an answer."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(found))


class AboutAServer(Answering):
    """Finds the server."""

    def sources(self, user_name: str, server_name: str) -> Sources:
        """Return a server's sources, or those of the default server if it doesn't exist yet.

        Raises:
            HTTPError: 404: there is no such user.
        """
        user = self._owner(user_name)
        if user is None:
            raise web.HTTPError(404, "No such user")
        spawner = user.spawners.get(server_name) or user.spawner
        set_locale(spawner, self)
        sources: Sources = spawner.gpuspawner_gates.sources
        return sources

    def _owner(self, user_name: str) -> User | None:
        """Find a user; most ask about their own servers, and are already loaded."""
        asks = self.current_user
        is_owner = isinstance(asks, User) and asks.name == user_name
        return asks if is_owner else self.find_user(user_name)
