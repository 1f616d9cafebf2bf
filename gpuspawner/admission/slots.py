"""Limits how many dry runs go on at once and start a second, fairly among users."""

import time
from asyncio import Semaphore, timeout
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from gpuspawner.rate_limit import Bucket, Clock


class TooManyDryRunsError(Exception):
    """A dry run got no turn in time. It was not made, so nothing is known."""


class Slots:
    """Slots that are held for a while: first come, first served.

    Args:
        most: How many can be held at the same time.
        of_one: How many of them one user can hold.
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
            TooManyDryRunsError: No slot became free in time.
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
    """A rate limit that keeps half of its saved-up turns for users who had none lately.

    So every user gets a turn in that time, and the others share the rest.

    Args:
        a_second: How many turns it gains a second.
        most: How many turns it can save up.
        lately: Seconds in which a user who had a turn can't use that half.
        clock: Returns the time in seconds.
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
        """Take a turn for this user if there is one; return whether it was taken."""
        now = self._clock()
        self._had = {name: at for name, at in self._had.items() if now - at < self._lately}
        if not self._bucket.take(leaving=self._reserved if person in self._had else 0):
            return False
        self._had.setdefault(person, now)
        return True
