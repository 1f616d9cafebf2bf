"""The rounds of an event loop, for tests of work that must not hold it."""

import asyncio
from collections.abc import AsyncIterator

import pytest


class Rounds:
    """Counts the rounds of the event loop.

    Attributes:
        count: How many there have been.
    """

    count = 0

    async def go_on(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1


@pytest.fixture
async def rounds() -> AsyncIterator[Rounds]:
    rounds = Rounds()
    counting = asyncio.create_task(rounds.go_on())
    yield rounds
    counting.cancel()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every turn of work in the background be long enough to end."""
    for longest in ("_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(f"gpuspawner.cluster.background.{longest}", 0.0)
