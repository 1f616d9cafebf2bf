"""Limits on concurrent calls and on calls per second, so that nobody blocks others."""

import time
from asyncio import Semaphore, timeout
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from gpuspawner.rate_limit import Bucket, Clock


class TooManyDryRunsError(Exception):
    """There was no turn for a dry run in time. It was not made, so nothing is known."""


class Slots:
    """At most `most` at the same time, and `of_one` for one person; first come, first served.

    Args:
        most: How many in all.
        of_one: How many of one person.
        seconds: How long to wait for one.
    """

    def __init__(self, most: int, of_one: int, seconds: float) -> None:
        self._all = Semaphore(most)
        self._of_one = of_one
        self._seconds = seconds
        self._persons: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, person: str) -> AsyncIterator[None]:
        """Hold a slot.

        Raises:
            TooManyDryRunsError: There was none in time.
        """
        theirs = self._persons.get(person)
        if theirs is None:
            theirs = self._persons[person] = Semaphore(self._of_one)
        async with AsyncExitStack() as held:
            try:
                async with timeout(self._seconds):
                    await held.enter_async_context(theirs)
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise TooManyDryRunsError from None
            yield


class Budget:
    """A rate limit. Half of the saved-up turns is reserved for people who had none lately.

    So everybody gets a turn in that time, and others share what is left over.

    Args:
        a_second: How many a second.
        most: How many can be saved up.
        lately: Seconds for which somebody who had one has to leave that half.
        clock: What tells the time, in seconds.
    """

    def __init__(
        self, a_second: float, most: int, lately: float, clock: Clock = time.monotonic
    ) -> None:
        self._clock = clock
        self._bucket = Bucket(a_second, most, clock)
        self._reserved = most / 2
        self._lately = lately
        self._had: dict[str, float] = {}

    def take(self, person: str) -> bool:
        """Whether there was one for this person, who has it now."""
        now = self._clock()
        self._had = {name: at for name, at in self._had.items() if now - at < self._lately}
        if not self._bucket.take(leaving=self._reserved if person in self._had else 0):
            return False
        self._had.setdefault(person, now)
        return True
