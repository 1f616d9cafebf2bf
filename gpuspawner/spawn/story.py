"""What is told of one start, to as many pages as ask for it, each from the beginning."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from gpuspawner.messages import Message


class Story:
    """The progress of one start, as the hub's progress stream has it."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []
        self._next = asyncio.Event()
        self._percent = 0

    def tell(self, message: Message, percent: int) -> None:
        """Tell a message, and move the bar, which never moves back."""
        self._percent = max(self._percent, percent)
        self._add(shown(message, self._percent))

    def move(self, percent: int) -> None:
        """Move the bar only."""
        if percent > self._percent:
            self._percent = percent
            self._add({"progress": percent})

    def _add(self, event: dict[str, Any]) -> None:
        self._told.append(event)
        reached, self._next = self._next, asyncio.Event()
        reached.set()

    async def read(self) -> AsyncIterator[dict[str, Any]]:
        """Yield all that was told, and then whatever is; it never ends by itself."""
        number = 0
        while True:
            following = self._next
            while number < len(self._told):
                yield dict(self._told[number])
                number += 1
            await following.wait()


def shown(message: Message, percent: int) -> dict[str, Any]:
    """Return a message as the hub's progress stream has it."""
    return {"progress": percent, "message": message.text, "html_message": message.html}
