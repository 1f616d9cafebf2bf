"""Sends one client the latest of what changes; a client that reads slowly skips what is between."""

import asyncio
import time
from collections.abc import Callable

from gpuspawner.preflight.token_bucket import Clock

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
