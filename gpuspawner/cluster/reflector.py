"""Keeps one kind of object in the cluster state up to date, and knows how fresh it is."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.decoding import Change
from gpuspawner.cluster.garbage import collect_young
from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.list_watch import Confirmed, ListEnd, Lost, Page, Signal, Watcher
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import AnyObject, Undecodable, decode

log = logging.getLogger(__name__)

# Seconds. API servers end each watch after a minute (see `Backoff`), so each connection that works
# confirms the state at least that often.
_LONGEST_UNCONFIRMED = 70.0


class Store(Protocol):
    """The state that a reflector writes."""

    def keys(self, kind: str) -> Iterator[Key]:
        """Yield (namespace, name) of all objects of a kind."""

    def mark_known(self, kind: str) -> None:
        """Record that all objects of a kind have been put."""

    def mark_unknown(self, kind: str) -> None:
        """Record that objects of a kind may be missing or outdated."""

    def put(self, thing: Any) -> None:
        """Store the newest version of an object, or an `Undecodable`."""

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Drop an object, if it exists."""


class Reflector:
    """Writes one kind of object into the cluster state; nobody else writes that kind.

    Args:
        kind: What it keeps.
        state: The state that it writes.
        notify: Called after every change of the state or of its freshness.
        background: Shared with other reflectors, so that together they hold the event loop no
            longer than one.

    Attributes:
        listed: Whether a list was ever complete; a missing API counts as listed.
        gap: Whether history was lost since; the state may hold objects that no longer exist.
        gap_since: When it was lost last (``time.monotonic``).
        confirmed: When the API server last said that the state is current (``time.monotonic``).
        error: What is wrong now, if anything.
        lost: Since when no watch works (``time.monotonic``); infinite if one does.
        outage: The longest time without one since the API server had sent all changes.
        behind: Since when it may not have sent all changes; infinite if it has.
        absent: Whether the API server lacks this API, so that there are no such objects.
        recovered: When all changes had come after contact was last lost (``time.monotonic``).
        missed: For how many seconds that one loss had lasted.
        distrusted: Whether what it knows counts as unknown until all changes have come.
        is_outdated: Whether the state would keep something else of the same objects now.
        returned: When a watch first worked again since it is distrusted; infinite if none has.
        undecodable: How many objects could not be decoded since the start.
        background: It works in turns with everything else there.
    """

    def __init__(
        self,
        kind: ObjectKind,
        state: Store,
        notify: Callable[[], None],
        background: Background | None = None,
    ) -> None:
        self.kind = kind
        self.listed = False
        self.gap = False
        self.gap_since = 0.0
        self.confirmed = time.monotonic()
        self.error: RequestError | None = None
        self.lost, self.outage = math.inf, 0.0
        self.behind = math.inf
        self.recovered, self.missed = -math.inf, 0.0
        self.absent = self.distrusted = self.is_outdated = False
        self.returned = math.inf
        self.undecodable = 0
        self._state = state
        self._notify = notify
        self.background = background or Background()
        self._unconfirmed: set[Key] = set()

    async def run(self, watcher: Watcher) -> None:
        """Follow the watcher, until everything has to be listed again because it is outdated."""
        async with aclosing(watcher.signals()) as signals:
            async for signal in signals:
                async with self.background:
                    await self._take(signal)
                del signal  # it may be long until the next one
                self._notify()
                if self.is_outdated:
                    self.is_outdated = False
                    self.doubt()
                    return

    def doubt(self) -> None:
        """Mark this kind as possibly wrong until the next list is complete."""
        if not self.gap:
            self.gap, self.gap_since = True, time.monotonic()
        if not self.kind.required:
            # The health covers optional kinds only for some seconds; nothing may use what may be
            # wrong.
            self._state.mark_unknown(self.kind.name)

    def distrust(self) -> None:
        """Mark this kind as unknown, because no watch of it works, until all changes have come."""
        self.distrusted = True
        self.returned = time.monotonic() if math.isinf(self.lost) else math.inf
        self._state.mark_unknown(self.kind.name)

    async def _take(self, signal: Signal) -> None:
        match signal:
            case Page(items, first):
                await self._take_page(items, first=first)
            case ListEnd():
                await self._finish_list()
            case Confirmed(changes, caught_up):
                await self._take_changes(changes)
                self._resume(caught_up=caught_up)
            case Lost(error, gap):
                await self._lose(error, gap=gap)

    async def _take_page(self, items: Iterable[msgspec.Raw], *, first: bool) -> None:
        self.error = None
        collect_young()
        if first:
            # An object that no page of the new list shows no longer exists. The very first list
            # starts with an empty state, so it has no keys to confirm.
            self._unconfirmed = await self._keys()
        for item in items:
            self._unconfirmed.discard(self._put(decode(self.kind.name, item)))
            await self.background.end_turn_if_long()

    async def _finish_list(self) -> None:
        gone, self._unconfirmed = self._unconfirmed, set()
        await self._drop(gone)
        self._state.mark_known(self.kind.name)
        self.listed = True
        self.gap = self.absent = self.distrusted = False
        self.confirmed = time.monotonic()
        self._resume(caught_up=True)

    async def _keys(self) -> set[Key]:
        keys: set[Key] = set()
        for key in self._state.keys(self.kind.name):
            keys.add(key)
            await self.background.end_turn_if_long()
        return keys

    async def _drop(self, keys: set[Key]) -> None:
        """Drop objects, and empty the set meanwhile: freeing a large one takes long too."""
        while keys:
            self._state.remove(self.kind.name, *keys.pop())
            await self.background.end_turn_if_long()

    async def _take_changes(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.type == "DELETED":
                self._state.remove(self.kind.name, *_key(change.object))
            else:
                self._put(change.object)
            await self.background.end_turn_if_long()
        self.confirmed = time.monotonic()

    def _resume(self, *, caught_up: bool) -> None:
        now = time.monotonic()
        self.outage = max(self.outage, now - self.lost)
        self.lost = math.inf
        self.returned = min(self.returned, now)
        if not caught_up:
            return
        if math.isfinite(self.behind):
            self.recovered, self.missed = now, now - self.behind
        self.error, self.outage, self.behind = None, 0.0, math.inf
        if self.distrusted:
            self.distrusted = False
            self._state.mark_known(self.kind.name)

    async def _lose(self, error: RequestError, *, gap: bool) -> None:
        now = time.monotonic()
        if self.absent:  # nothing was watched that could confirm it
            self.confirmed = now
        was_dead = now - self.confirmed > _LONGEST_UNCONFIRMED
        self.error, self.lost = error, min(self.lost, self.confirmed if was_dead else now)
        self.behind = min(self.behind, self.lost)
        if not gap:
            return
        self.doubt()
        self.absent = False
        if not self.kind.required:
            await self._drop(await self._keys())
            if error.status == 404 and self.kind.absent_is_empty and self.kind.api:
                # An API that the server lacks (device classes before 1.34) has no objects. If the
                # core API isn't found, it is a proxy that says so.
                self._state.mark_known(self.kind.name)
                self.listed, self.gap, self.confirmed = True, False, time.monotonic()
                self.absent, self.distrusted = True, False
                self.lost, self.outage, self.behind = math.inf, 0.0, math.inf

    def _put(self, parsed: AnyObject | Undecodable) -> Key:
        if isinstance(parsed, Undecodable):
            self._count(parsed)
        self._state.put(parsed)
        return _key(parsed)

    def _count(self, undecodable: Undecodable) -> None:
        self.undecodable += 1
        if self.undecodable == 1:
            log.warning(
                "An object of the cluster cannot be understood (%s); what depends on it is "
                "unknown. Further ones of its kind are counted, not logged.",
                undecodable.text,
            )


def _key(parsed: AnyObject | Undecodable) -> Key:
    if isinstance(parsed, Undecodable):
        return parsed.namespace, parsed.name
    return parsed.metadata.key
