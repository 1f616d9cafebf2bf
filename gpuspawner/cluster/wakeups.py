"""Wakes tasks: at the next change of something, and once an API server is back."""

import asyncio
import math
from contextlib import suppress


class Changes:
    """Changes of a store, or of what a start tells, for the tasks that wait for them."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    async def next(self, timeout: float) -> bool:  # noqa: ASYNC109 - a start's patience
        """Wait for the next change; return False after `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._next.wait()
                return True
        return False

    def tell(self) -> None:
        """Wake every task that waits. Those that wait later wait for the next change."""
        change, self._next = self._next, asyncio.Event()
        change.set()


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
        self._next: asyncio.TimerHandle | None = None
        self._changes = Changes()

    def wake(self) -> None:
        """Let all that wait ask again; if they have just been woken, some seconds later."""
        loop = asyncio.get_running_loop()
        at = self._woken + _BETWEEN_WAKES
        if at <= loop.time():
            self._wake()
        elif self._next is None:
            self._next = loop.call_at(at, self._wake)

    def _wake(self) -> None:
        self._woken, self._next = asyncio.get_running_loop().time(), None
        self.wakes += 1
        self._changes.tell()

    async def wait(self, wakes: int, seconds: float) -> None:
        """Wait for so many seconds, or until there have been more than so many wakes."""
        if self.wakes <= wakes:
            await self._changes.next(seconds)
