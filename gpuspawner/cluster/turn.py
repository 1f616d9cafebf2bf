"""Turns on the hub's event loop: between them, long work lets other tasks run."""

import asyncio
import time


class Turn:
    """How long this task has held the event loop.

    Args:
        seconds: The longest that it may hold the loop. If many tasks do the same work at once, the
            loop is held for this time by each.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = time.perf_counter()

    async def end_if_long(self) -> None:
        """Let other tasks run if the turn has been long, and begin the next one."""
        if time.perf_counter() - self._started > self._seconds:
            await asyncio.sleep(0)
            self._started = time.perf_counter()
