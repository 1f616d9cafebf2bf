"""Limits dry runs, fairly among users.

Starts have their own slots; pages and open forms share slots and answers.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from weakref import WeakValueDictionary

import msgspec

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_run import Admission, Answer, DryRun
from gpuspawner.preflight.token_bucket import Clock, TokenBucket

# With these, a class that starts together gets slots in time even if each webhook takes 0.1 s; a
# refusal asks about three alternatives at the same time.
_STARTS, _STARTS_OF_ONE = 24, 3
_PREVIEWS, _PREVIEWS_OF_ONE = 4, 1
CONNECTIONS = _STARTS + _PREVIEWS

# In seconds. A hundred starts get their turns in ten seconds, two each; a page must not wait long.
_PATIENCE_OF_STARTS = 10.0
_PATIENCE_OF_PREVIEWS = 2.0

# Seconds. Admission's answer changes when an administrator changes a rule or a quota is used up.
_FRESH = 10.0
_USABLE = 60.0

# For all open forms together: each asks every 10 s, and needs a dry run of its own once in _USABLE.
_A_SECOND, _SAVED_UP = 4.0, 8


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
        self._all = asyncio.Semaphore(most)
        self._of_one = of_one
        self._seconds = seconds
        self._persons: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, person: str) -> AsyncIterator[None]:
        """Hold a slot.

        Raises:
            TooManyDryRunsError: No slot became free in time.
        """
        theirs = self._persons.get(person)
        if theirs is None:
            theirs = self._persons[person] = asyncio.Semaphore(self._of_one)
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._seconds):
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
        self._bucket = TokenBucket(a_second, most, clock)
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


class _Known(msgspec.Struct, frozen=True):
    answer: Answer
    at: float


class DryRuns:
    """Dry runs for a whole hub.

    A start always makes its own dry run. A page or a form may get an answer that is up to a minute
    old, and those that ask about the same pod, to the last label, in the same namespace share it.

    `patience` are the seconds that a page or a form waits for its turn.
    """

    def __init__(
        self,
        dry_run: DryRun,
        patience: float = _PATIENCE_OF_PREVIEWS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._dry_run = dry_run
        self._clock = clock
        self._starts = Slots(_STARTS, _STARTS_OF_ONE, _PATIENCE_OF_STARTS)
        self._previews = Slots(_PREVIEWS, _PREVIEWS_OF_ONE, patience)
        self._budget = Budget(_A_SECOND, _SAVED_UP, _USABLE, clock)
        self._known: dict[bytes, _Known] = {}
        self._asked: dict[bytes, asyncio.Task[Answer]] = {}

    @property
    def sent(self) -> int:
        """How many the API server has been asked for."""
        return self._dry_run.sent

    def for_start(self, person: str) -> Admission:
        """Dry runs for a server that this user starts."""
        return _Turn(partial(self._ask, self._starts, person))

    def for_page(self, person: str) -> Admission:
        """Dry runs for a page that the hub renders for this user."""
        return _Turn(partial(self._shared, person, lambda: True))

    def for_form(self, person: str) -> Admission:
        """Dry runs for a form that this user keeps open and that asks again and again."""
        return _Turn(partial(self._shared, person, lambda: self._budget.take(person)))

    async def _shared(
        self, person: str, may_ask: Callable[[], bool], namespace: str, pod: Manifest
    ) -> Answer:
        key, now = _key(namespace, pod), self._clock()
        known = self._known.get(key)
        if known is not None and now - known.at < _FRESH:
            return known.answer
        if key not in self._asked:
            if not may_ask():
                if known is not None and now - known.at < _USABLE:
                    return known.answer
                raise TooManyDryRunsError
            self._begin(key, self._ask(self._previews, person, namespace, pod))
        # The request that asked first may be cancelled; others still wait for the answer.
        return await asyncio.shield(self._asked[key])

    def _begin(self, key: bytes, asking: Awaitable[Answer]) -> None:
        task = self._asked[key] = asyncio.ensure_future(asking)

        def end(_: object) -> None:
            del self._asked[key]
            if not task.cancelled() and task.exception() is None:
                self._keep(key, task.result())

        task.add_done_callback(end)

    async def _ask(self, slots: Slots, person: str, namespace: str, pod: Manifest) -> Answer:
        async with slots.slot(person):
            return await self._dry_run.admit(namespace, pod)

    def _keep(self, key: bytes, answer: Answer) -> None:
        now = self._clock()
        self._known = {k: known for k, known in self._known.items() if now - known.at < _USABLE}
        self._known[key] = _Known(answer, now)


class _Turn(msgspec.Struct, frozen=True):
    """The `Admission` of one user for one purpose."""

    ask: Callable[[str, Manifest], Awaitable[Answer]]

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        if not pod.get("spec"):
            return None
        return await self.ask(namespace, pod)


def _key(namespace: str, pod: Manifest) -> bytes:
    """Hash everything that the API server gets: it decides the answer, and may hold secrets."""
    return hashlib.sha256(msgspec.json.encode([namespace, pod])).digest()
