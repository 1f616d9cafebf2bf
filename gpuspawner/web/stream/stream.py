"""One open stream: a form, its client, and its end."""

import asyncio
import random
import time
from collections.abc import Callable

from gpuspawner.preflight.token_bucket import Clock
from gpuspawner.web.stream.open_form import OpenForm
from gpuspawner.web.stream.outlet import Outlet, Send

LIFE_SECONDS = 600.0
"""After this time at most, the client has to open another one. Its request does what no check does:
the hub notes that the user is active, and may ask its authenticator; it fails if the browser has
logged out; and the form learns of what never changes by itself."""
CHECK_SECONDS = 60.0
"""How often the hub checks whether the client may still have the stream."""
RENEW_SECONDS = 30.0
"""How often the hub reads anew what may change without a sign: policies by the time of day, groups,
and administrators' functions."""
SILENT_SECONDS = 20.0
"""After which a comment keeps the connection; proxies give up after 60 s, clients after 45 s."""
STUCK_SECONDS = 30.0
"""How long a client may not read what was sent before the hub closes the connection."""

AGAIN = b"event: again\ndata:\n\n"
"""Asks the client to open another stream now."""
FULL = b"event: full\ndata:\n\n"
"""Tells the client that it has too many streams; it had better ask now and then."""


class Stream:
    """A client that follows a form.

    Args:
        until: When its time is over at the latest, by the clock.
        may_stay: Whether the client may still have it, by the hub's database.

    Attributes:
        form: What it shows.
        ended: Done when the stream is over: with a last message, or None if the client is gone or
            doesn't read.
        rests_until: Until when the hub doesn't find out what only this form shows.
    """

    def __init__(
        self,
        form: OpenForm,
        send: Send,
        until: float,
        may_stay: Callable[[], bool],
        clock: Clock = time.monotonic,
    ) -> None:
        self.form = form
        self.ended: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.rests_until = 0.0
        self._may_stay = may_stay
        self._clock = clock
        self._outlet = Outlet(send, self.lose, clock)
        lasts = LIFE_SECONDS * random.uniform(0.7, 1.0)  # noqa: S311, so that not all end at once
        self._until = min(until, clock() + lasts)
        self._renewed_at = clock()
        # Streams that were opened together are checked at different times.
        self._checked_at = clock() - CHECK_SECONDS * random.uniform(0.0, 1.0)  # noqa: S311

    def show(self, event: bytes, before: bytes = b"") -> None:
        """Send an event, unless the client has just got it."""
        if not self.ended.done():
            self._outlet.show(event, before)

    def lose(self) -> None:
        """Note that the client is gone, or doesn't read."""
        self._over(None)

    def leave(self) -> None:
        """End, in favour of another stream of the same client."""
        self.end(FULL)

    def end(self, last: bytes = b"") -> None:
        """End the stream, with a last message."""
        self._over(last)

    def _over(self, last: bytes | None) -> None:
        if not self.ended.done():
            self.ended.set_result(last)

    def tend(self) -> None:
        """Keep the connection, or end it if its time is over or if the client doesn't read."""
        if self._clock() >= self._until:
            self.end(AGAIN)
        elif self._outlet.waited() > STUCK_SECONDS:
            self.lose()
        else:
            self._outlet.keep_alive(SILENT_SECONDS)

    def is_to_check(self) -> bool:
        """Whether the client's rights are to be checked; if so, it counts as done."""
        if self.ended.done() or self._clock() - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = self._clock()
        return True

    def check(self) -> None:
        """End the stream if the client may not have it any more: it opens another one in vain.

        Raises:
            Exception: The database doesn't answer.
        """
        if not self._may_stay():
            self.end(AGAIN)

    def is_to_renew(self) -> bool:
        """Whether the form is to be read anew; if so, it counts as done."""
        if self._clock() - self._renewed_at < RENEW_SECONDS or not self.form.may_change:
            return False
        self._renewed_at = self._clock()
        return True
