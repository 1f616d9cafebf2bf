"""Limits dry runs: starts have their own slots; pages and open forms share slots and answers."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from gpuspawner.admission.dry_run import Admission, Answer, DryRun
from gpuspawner.admission.slots import Budget, Slots, TooManyDryRunsError
from gpuspawner.kube.manifest import Manifest
from gpuspawner.rate_limit import Clock

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


@dataclass(frozen=True, slots=True)
class _Known:
    answer: Answer
    at: float


class DryRuns:
    """Dry runs for a whole hub.

    A start always makes its own dry run. A page or a form may get an answer that is up to a minute
    old, and those that ask about the same pod, to the last label, in the same namespace share it.

    Args:
        dry_run: Makes one dry run.
        patience: Seconds that a page or a form waits for its turn.
        clock: Returns the time in seconds.
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

    def for_start(self, person: str) -> Admission:
        """Dry runs for a server that this user starts."""
        return _Turn(partial(self._start, person))

    def for_page(self, person: str) -> Admission:
        """Dry runs for a page that the hub renders for this user."""
        return _Turn(partial(self._shared, person, lambda: True))

    def for_form(self, person: str) -> Admission:
        """Dry runs for a form that this user keeps open and that asks again and again."""
        return _Turn(partial(self._shared, person, lambda: self._budget.take(person)))

    async def _start(self, person: str, namespace: str, pod: Manifest) -> Answer:
        async with self._starts.slot(person):
            return await self._dry_run.admit(namespace, pod)

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
            self._begin(key, self._ask(person, namespace, pod))
        # The request that asked first may be cancelled; others still wait for the answer.
        return await asyncio.shield(self._asked[key])

    def _begin(self, key: bytes, asking: Awaitable[Answer]) -> None:
        task = self._asked[key] = asyncio.ensure_future(asking)

        def end(_: object) -> None:
            del self._asked[key]
            if not task.cancelled() and task.exception() is None:
                self._keep(key, task.result())

        task.add_done_callback(end)

    async def _ask(self, person: str, namespace: str, pod: Manifest) -> Answer:
        async with self._previews.slot(person):
            return await self._dry_run.admit(namespace, pod)

    def _keep(self, key: bytes, answer: Answer) -> None:
        now = self._clock()
        self._known = {k: known for k, known in self._known.items() if now - known.at < _USABLE}
        self._known[key] = _Known(answer, now)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Dry runs for one user and one purpose."""

    ask: Callable[[str, Manifest], Awaitable[Answer]]

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission.admit`."""
        if not pod.get("spec"):
            return None
        await asyncio.sleep(0)  # our waits begin so (see gpuspawner.spawn.at_once)
        return await self.ask(namespace, pod)


def _key(namespace: str, pod: Manifest) -> bytes:
    """Hash everything that the API server gets: it decides the answer, and may hold secrets."""
    return hashlib.sha256(msgspec.json.encode([namespace, pod])).digest()
