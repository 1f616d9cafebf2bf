"""How long people have lately waited in line for the same thing, as people in line read it.

Nothing is forecast. What has been waited is a fact, also if it isn't what the next one waits.
"""

from collections import deque
from collections.abc import Hashable
from math import ceil, inf
from statistics import quantiles

import msgspec

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.meta import Key

LEAST_WAITS = 8
"""How many must have waited for something before the hub tells how long."""
_KEPT = 500
"""How many waits count for each thing: the last ones."""
_KINDS = 1_000
"""For how many things waits are remembered."""
_DAY = 24 * 3600.0
_DAYS = 30
"""After how many days a wait doesn't count any more."""
_SURE_SECONDS = 30.0
"""For how long an answer is used again: everybody who waits asks every two seconds."""

WaitedFor = Hashable
"""Equal for those who wait for the same thing, as they read its name."""


class UsualWait(msgspec.Struct, frozen=True):
    """Between how many minutes eight of ten have waited; the others less or more, as often.

    Attributes:
        low: In whole minutes.
        high: In whole minutes, and more than *low*.
        days: In how many days before now all of them were called.
    """

    low: int
    high: int
    days: int


class _Wait(msgspec.Struct, frozen=True):
    server: Key
    since: float
    called: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.called - self.since)


class Waits:
    """The last waits of those who were called, and those that still last; times as the epoch's."""

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[WaitedFor, float]] = {}
        self._ended = Recent[WaitedFor, deque[_Wait]](_KINDS)
        self._told = Recent[WaitedFor, tuple[float, UsualWait | None]](_KINDS)

    def join(self, key: Key, kind: WaitedFor, since: float) -> None:
        """Note that a server has waited since a time."""
        self._waiting[key] = kind, since

    def leave(self, key: Key) -> None:
        """Note that a server waits no longer, if it has, and that this says nothing of others."""
        self._waiting.pop(key, None)

    def call(self, key: Key, now: float) -> None:
        """Note that it is the turn of a server, and count its wait if it has joined.

        Somebody whose start fails may go on waiting; then it is one wait, until the last call.
        """
        if key in self._waiting:
            kind, since = self._waiting.pop(key)
            others = (
                it for it in self._ended.get(kind, ()) if (it.server, it.since) != (key, since)
            )
            # As the one that was set last.
            self._ended[kind] = deque((*others, _Wait(key, since, now)), maxlen=_KEPT)

    def usual(self, kind: WaitedFor, now: float) -> UsualWait | None:
        """Return how long one waits for something; None if there is no ground to say so.

        There is none if too few have waited, or if somebody waits for it who has waited for longer
        than that by now: then the line takes longer than it did.
        """
        made, usual = self._told.get(kind, (-inf, None))
        if not 0 <= now - made < _SURE_SECONDS:  # less than 0 if the clock was set back
            usual = self._usual(kind, now)
            self._told[kind] = now, usual
        return usual

    def _usual(self, kind: WaitedFor, now: float) -> UsualWait | None:
        waits = [it for it in self._ended.get(kind, ()) if now - it.called <= _DAYS * _DAY]
        if len(waits) < LEAST_WAITS:
            return None
        least, *_, most = quantiles((it.seconds for it in waits), n=10, method="inclusive")
        low, high = int(least / 60), max(1, ceil(most / 60))
        first = min((since for of, since in self._waiting.values() if of == kind), default=now)
        if now - first > 60 * high:
            return None
        days = ceil((now - min(it.called for it in waits)) / _DAY)
        return UsualWait(low, max(low + 1, high), max(1, days))
