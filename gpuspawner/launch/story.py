"""What is told of one start, to as many pages as ask for it, each from the beginning."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from gpuspawner import messages
from gpuspawner.messages import Message

REPEAT_SECONDS = 30.0
"""After so much silence, a page reads the last message again."""


class Story:
    """The progress of one start, as the hub's progress stream has it."""

    def __init__(self) -> None:
        self._told: dict[int, dict[str, Any]] = {}
        self._count = 0
        self._replaced: int | None = None
        self._next = asyncio.Event()
        self._percent = 0
        self._last: Message | None = None

    def tell(self, message: Message, percent: int, texts: Iterable[str] = ()) -> None:
        """Tell a message, and move the bar, which never moves back.

        *texts* is what Kubernetes says of it.
        """
        self._replaced = None
        told = messages.with_details_in_log(message, texts)
        told = told if self._told else messages.said_first(told)
        self._percent, self._last = max(self._percent, percent), message
        self._add(shown(told, self._percent))

    def tell_instead(self, message: Message, percent: int) -> None:
        """Tell a message that replaces the one before if that was told so too.

        A place in line changes a thousand times, and pages that open later read only the last.
        """
        if self._replaced is not None:
            del self._told[self._replaced]
        self.tell(message, percent)
        self._replaced = self._count - 1

    def move(self, percent: int) -> None:
        """Move the bar only.

        Programs that read the stream expect a message in each event, as JupyterHub documents it.
        """
        if percent > self._percent and self._last is not None:
            self._percent = percent
            self._add(shown(messages.said_before(self._last), percent))

    def _add(self, event: dict[str, Any]) -> None:
        self._told[self._count] = event
        self._count += 1
        reached, self._next = self._next, asyncio.Event()
        reached.set()

    async def read(self) -> AsyncIterator[dict[str, Any]]:
        """Yield all that was told and counts, and then whatever is; it never ends by itself.

        It also repeats the last message now and then: the hub ends the reading of a page that was
        closed only when it can't send it the next event.
        """
        number = 0
        while True:
            following = self._next
            new = [event for told, event in self._told.items() if told >= number]
            number = self._count
            for event in new:
                yield dict(event)
            try:
                await asyncio.wait_for(following.wait(), REPEAT_SECONDS)
            except TimeoutError:
                if self._last is not None:
                    yield shown(messages.said_before(self._last), self._percent)


def shown(message: Message, percent: int) -> dict[str, Any]:
    """Return a message as the hub's progress stream has it."""
    return {"progress": percent, "message": message.text, "html_message": message.html}
