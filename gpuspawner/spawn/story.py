"""What is told of one start, to as many pages as ask for it, each from the beginning."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from gpuspawner import messages
from gpuspawner.messages import Message


class Story:
    """The progress of one start, as the hub's progress stream has it."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []
        self._next = asyncio.Event()
        self._percent = 0
        self._last: Message | None = None

    def tell(self, message: Message, percent: int, texts: Iterable[str] = ()) -> None:
        """Tell a message, and move the bar, which never moves back.

        *texts* is what Kubernetes says of it.
        """
        told = messages.with_details_in_log(message, texts)
        told = messages.said_first(told) if self._last is None else told
        self._percent, self._last = max(self._percent, percent), message
        self._add(shown(told, self._percent))

    def move(self, percent: int) -> None:
        """Move the bar only.

        Programs that read the stream expect a message in each event, as JupyterHub documents it.
        """
        if percent > self._percent and self._last is not None:
            self._percent = percent
            self._add(shown(messages.said_before(self._last), percent))

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
