"""One open stream: a form, its client, and its end; and how many streams there are."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuspawner.preflight.token_bucket import Clock
from gpuspawner.web.open_form import OpenForm

# Sends one client the latest of what changes; a client that reads slowly skips what is between.

Send = Callable[[bytes], "asyncio.Future[None]"]
"""Begins to send bytes to a client; the future is done when all of them are on their way."""

KEEP_ALIVE = b":\n\n"
"""A comment, which clients ignore (WHATWG HTML, 9.2.6)."""


class Outlet:
    """What one client has got, and what it is to get.

    At most one message is under way and one waits, however slowly the client reads.

    Attributes:
        lost: Called once if nothing can be sent any more.
    """

    def __init__(self, send: Send, lost: Callable[[], None], clock: Clock = time.monotonic) -> None:
        self._send = send
        self._lost = lost
        self._clock = clock
        self._shown: bytes | None = None
        self._next: tuple[bytes, bytes] | None = None
        self._sending: asyncio.Future[None] | None = None
        self._since = clock()

    def show(self, message: bytes, before: bytes = b"") -> None:
        """Send a message, unless the client has just got it; *before* goes ahead of it."""
        if message != (self._next[0] if self._next else self._shown):
            self._next = message, before
            self._pump()

    def keep_alive(self, silent: float) -> None:
        """Send a comment if nothing was sent for so many seconds."""
        if self._sending is None and self._clock() - self._since >= silent:
            self._begin(KEEP_ALIVE)

    def waited(self) -> float:
        """Return for how many seconds the client has not read what was sent; 0 if it has."""
        return 0.0 if self._sending is None else self._clock() - self._since

    def _pump(self) -> None:
        if self._sending is None and self._next is not None:
            (message, before), self._next = self._next, None
            self._shown = message
            self._begin(before + message)

    def _begin(self, sent: bytes) -> None:
        self._since = self._clock()
        try:
            sending = self._send(sent)
        except Exception:  # noqa: BLE001, whatever it is, the client is gone
            self._lost()
            return
        if sending.done():
            self._end(sending)
        else:
            self._sending = sending
            sending.add_done_callback(self._end)

    def _end(self, sending: "asyncio.Future[None]") -> None:
        self._sending = None
        if sending.cancelled() or sending.exception() is not None:
            self._lost()
        else:
            self._pump()


# Limits how many streams are open, in total and for each client.

MOST_OF_ONE = 4
"""Streams for one client. Over HTTP/1.1 a browser has six connections to a host for all its
windows: some must stay free for pages and questions."""
MOST = 5_000
"""Streams in all. Each takes about 35 kB of the hub's memory."""


class TooManyStreamsError(Exception):
    """No more streams can be open right now."""


class Crowd:
    """The open streams by client. Another one of the same client ends the client's oldest."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._of: dict[object, deque[Callable[[], None]]] = {}
        self._size = 0

    @contextmanager
    def place(self, client: object, leave: Callable[[], None]) -> Iterator[None]:
        """Count a stream while the block runs; *leave* tells it to end early.

        Raises:
            TooManyStreamsError: There are too many in all.
        """
        if self._size >= self._most:
            raise TooManyStreamsError
        theirs = self._of.setdefault(client, deque())
        theirs.append(leave)
        self._size += 1
        try:
            if len(theirs) > self._most_of_one:
                theirs.popleft()()
            yield
        finally:
            self._size -= 1
            if leave in theirs:
                theirs.remove(leave)
            if not theirs and self._of.get(client) is theirs:
                del self._of[client]


# The stream itself.

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
        self.end(None)

    def leave(self) -> None:
        """End, in favour of another stream of the same client."""
        self.end(FULL)

    def end(self, last: bytes | None = b"") -> None:
        """End the stream, with a last message; with None, the client gets none."""
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
