"""Wakes the tasks that wait for the next change of something."""

import asyncio
from contextlib import suppress


class Changes:
    """The changes of a store, for the tasks that wait for them."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    async def next(self, timeout: float) -> bool:  # noqa: ASYNC109 - a start's patience
        """Wait for the next change; return False after `timeout` seconds."""
        change = self._next
        await asyncio.sleep(0)  # our waits begin so (see gpuspawner.gates.at_once)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await change.wait()
                return True
        return False

    def tell(self) -> None:
        """Wake every task that waits. Those that wait later wait for the next change."""
        change, self._next = self._next, asyncio.Event()
        change.set()
