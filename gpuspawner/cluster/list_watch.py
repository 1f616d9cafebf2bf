"""Lists, then watches one kind of object forever, and turns it into a stream of signals.

The protocol is the one in the Kubernetes documentation, "Kubernetes API Concepts" (efficient
detection of changes, bookmarks, retrieving large results sets in chunks, 410 Gone):

- A list comes in pages; the next watch starts at the list's resourceVersion.
- When a watch ends, for any reason, the next one starts at the last version seen, without a list;
  bookmarks keep that version recent.
- 410 Gone, as a status or as an ERROR event, means that the history is lost: list again. The
  consumer of the signals then drops objects that the new list no longer has.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import GONE, Client, RequestError
from gpuspawner.cluster.decoding import Change, Lines, ListPage, decode_page, read_event
from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.retries import Backoff, Retries
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.kube.objects import UNDECODABLE

# client-go's default; at 6 kB a pod a page is about 3 MB.
_PAGE_SIZE = 500
# Two pages are in memory at a time; we ask for fewer large objects.
_PAGE_BYTES = 6 * 1024 * 1024
# We stop reading a longer page and ask for a smaller one: 500 pods of the largest size are 6 GB,
# and the hub keeps a whole page in memory.
_LONGEST_PAGE = 4 * _PAGE_BYTES


async def pages(
    client: Client, path: str, query: Mapping[str, str], silence: float, background: Background
) -> AsyncGenerator[ListPage, None]:
    """Yield all pages of a collection; the last one has no ``continue``.

    `silence` are the seconds without a byte after which reading a page fails. Pages are
    decompressed and decoded in turns of `background`.

    Raises:
        RequestError: A page didn't come, or isn't a list.
    """
    source = _Source(client, path, silence, background)
    asked = dict(query)
    coming = asyncio.ensure_future(source.fetch(asked, _PAGE_SIZE))
    try:
        while True:
            body, limit = await coming
            page = await _decoded(body, background)
            asked["continue"] = page.metadata.continue_
            if not page.metadata.continue_:
                yield page
                return
            limit = _fitting(limit, len(body))
            coming = asyncio.ensure_future(source.fetch(dict(asked), limit))
            del body
            yield page
            del page  # the next one may take long
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, RequestError):
            await coming


class _Source(msgspec.Struct, frozen=True):
    """Where pages come from."""

    client: Client
    path: str
    silence: float
    background: Background

    async def fetch(self, query: Mapping[str, str], limit: int) -> tuple[bytearray, int]:
        """Return a page and the limit that it was asked for with; ask again if it is too long."""
        while True:
            longest = _LONGEST_PAGE if limit > 1 else math.inf  # one object cannot be divided
            body = await self._body({**query, "limit": str(limit)}, longest)
            if len(body) <= longest:
                return body, limit
            limit = max(1, limit // 8)

    async def _body(self, query: Mapping[str, str], longest: float) -> bytearray:
        parts, size = [], 0
        # Decompressing costs the event loop a third of decrypting the same page uncompressed.
        async with self.client.get(self.path, query, self.silence, encoding="gzip") as response:
            while size <= longest and (part := await response.content.readany()):
                async with self.background:
                    # The rest of what has arrived is decompressed now, part by part.
                    while part and size <= longest:
                        parts.append(part)
                        size += len(part)
                        await self.background.end_turn_if_long()
                        part = response.content.read_nowait()
        return bytearray().join(parts)


async def _decoded(body: bytearray, background: Background) -> ListPage:
    try:
        return await decode_page(body, background)
    except UNDECODABLE as error:
        raise RequestError(f"the answer is no Kubernetes list: {error}") from None


def _fitting(limit: int, size: int) -> int:
    """How many objects to ask for after a page of `limit` that took `size` bytes."""
    return max(1, min(_PAGE_SIZE, limit * _PAGE_BYTES // max(size, 1)))


_FORBIDDEN, _ABSENT, _TOO_MANY_REQUESTS = 403, 404, 429
# Answers that say nothing about an API. While an API server starts, it forbids everything until it
# has read RBAC's objects, and answers 503 until it has all paths (pkg/util/notfoundhandler of
# k8s.io/apiserver).
_SAYS_NOTHING = frozenset({401, _FORBIDDEN, _TOO_MANY_REQUESTS, 502, 503, 504})
# A server that answers with so many errors, and no success, may not know the version at all: its
# data was restored from an older copy, say. A server that doesn't answer hasn't lost history, nor
# has one that is too busy, which a list keeps much busier than a watch (API priority and fairness).
_MOST_ERRORS = 10
# Seconds. A watch that ends sooner without an event is a failure: asking again at once would be a
# tight loop.
_SHORTEST_WATCH = 1.0


class Page(msgspec.Struct, frozen=True):
    """Some objects of a list, still encoded; `first` for the first page of a list."""

    items: list[msgspec.Raw]
    first: bool


class ListEnd(msgspec.Struct, frozen=True):
    """The list is complete: an object that was on none of its pages doesn't exist."""


class Confirmed(msgspec.Struct, frozen=True):
    """The API server has sent these changes.

    `caught_up`: it has sent all changes that happened while contact was lost.
    """

    changes: list[Change]
    caught_up: bool = True


class Lost(msgspec.Struct, frozen=True):
    """Contact was lost: `error` says how. The watcher tries again.

    `gap`: what was known doesn't hold any more, so the watcher lists again.
    """

    error: RequestError
    gap: bool


Signal = Page | ListEnd | Confirmed | Lost


class Watcher:
    """Follows all objects of one kind.

    Args:
        contact: Shared with the other watchers of the same API server.
        background: Shared with whoever takes the signals, and with other watchers.
    """

    def __init__(
        self,
        client: Client,
        kind: ObjectKind,
        backoff: Backoff | None = None,
        contact: Contact | None = None,
        background: Background | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._query = {"fieldSelector": kind.field_selector} if kind.field_selector else {}
        self._backoff = backoff or Backoff()
        self._retries = Retries(self._backoff, contact or Contact())
        self._background = background or Background()
        # Where the next watch starts; None if a list must come first.
        self._version: str | None = None
        self._is_absent = False
        """Whether the server lacks this API, by the last answer that says anything about it."""
        self._doubt_since: float | None = None
        self._is_listed_in_doubt = False
        self._errors = 0
        self._opened = math.inf
        # Whether the server may not have sent all changes yet that happened while contact was lost.
        self._is_behind = False

    async def signals(self) -> AsyncGenerator[Signal, None]:
        """Yield everything that happens, forever; every failure becomes a `Lost`."""
        while True:
            lost = None
            self._retries.begin()
            try:
                async with aclosing(self._list_or_watch()) as signals:
                    async for signal in signals:
                        yield signal
                        del signal  # it may be long until the next one
            except RequestError as error:
                lost = self._lost(await self._discovered(error) or error)
            if lost is not None:
                yield lost
                await self._retries.wait(lost.error)

    async def _discovered(self, error: RequestError) -> RequestError | None:
        """Return what discovery says, if an error leaves open whether the server lacks the API.

        It answers 404 if so. RBAC also forbids what doesn't exist, and a collection whose webhook
        hangs may never answer. Discovery asks no webhook, and is open to everyone who has logged in
        (ClusterRole system:discovery).
        """
        leaves_open = error.status == _FORBIDDEN or (self._is_absent and error.is_away)
        if not leaves_open or not self._kind.api:
            return None
        try:
            async with self._client.get(self._kind.api, {}, self._backoff.page):
                self._is_absent = False
                return None
        except RequestError as found:
            says_more = found.status == _ABSENT or (error.is_away and not found.is_away)
            return found if says_more else None

    def _lost(self, error: RequestError) -> Lost:
        if error.status is None and self._lasted() >= _SHORTEST_WATCH:
            self._succeed()  # the connection worked until it broke
        # No server lacks the core API, so only a proxy says so. It may have said the same of APIs
        # that can be absent: they are asked for again as soon as it finds the core API.
        has_no_core = error.status == _ABSENT and not self._kind.api
        self._retries.fail(is_away=error.is_away or has_no_core)
        self._is_behind = True
        if self._has_lost_history(error):
            if self._is_listed_in_doubt and error.status == _FORBIDDEN:
                # It may be listed but not watched: each list would be followed by the next one.
                error.retry_after = self._backoff.unhurried().last_if_refused
                self._is_listed_in_doubt = False
            self._version, self._is_absent = None, error.status == _ABSENT
            return Lost(error.alone(), gap=True)
        return Lost(error.alone(), gap=self._version is None and not self._is_absent)

    def _has_lost_history(self, error: RequestError) -> bool:
        if self._says_nothing(error):
            return self._is_withdrawn()
        self._doubt_since = None
        if self._is_absent and error.is_away:
            return False
        if self._is_absent and error.status != _ABSENT:
            self._retries.hurry()  # so that what the server has now is asked for soon
            return True
        return error.status in (_ABSENT, GONE) or self._asks_in_vain(error)

    def _asks_in_vain(self, error: RequestError) -> bool:
        """Count an error, and return whether the server has answered with many since a success.

        This is so at every tenth error only: if lists work and watches don't, each list costs
        time again.
        """
        if error.status in (None, _TOO_MANY_REQUESTS) or error.is_away:
            return False
        self._errors += 1
        return self._errors % _MOST_ERRORS == 0

    def _says_nothing(self, error: RequestError) -> bool:
        """Whether the answer leaves open if there are such objects."""
        if error.is_away:
            return False
        return error.status == _FORBIDDEN or (self._is_absent and error.status in _SAYS_NOTHING)

    def _is_withdrawn(self) -> bool:
        """Whether this lasts: the right is withdrawn, so objects must be listed if it is back."""
        now = time.monotonic()
        if self._doubt_since is None:
            self._doubt_since = now
            self._retries.hurry()  # it answers again
        return now - self._doubt_since >= self._backoff.doubt

    def _succeed(self) -> None:
        self._retries.succeed()
        self._doubt_since, self._is_listed_in_doubt, self._errors = None, False, 0

    def _lasted(self) -> float:
        """Return for how many seconds the last watch was open; less than 0 if it wasn't."""
        return time.monotonic() - self._opened

    def _list_or_watch(self) -> AsyncGenerator[Signal, None]:
        self._opened = math.inf
        return self._list() if self._version is None else self._watch(self._version)

    async def _list(self) -> AsyncGenerator[Signal, None]:
        version, first = "", True
        query, silence = self._query, self._backoff.page
        async with aclosing(
            pages(self._client, self._kind.path, query, silence, self._background)
        ) as parts:
            async for page in parts:
                self._retries.reach()
                self._is_absent = False
                yield Page(page.items or [], first)
                version, first = page.metadata.resource_version, False
                del page  # the next one may take long
        if not version:
            raise RequestError("the list has no resourceVersion to watch from")
        self._version, self._is_behind = version, False
        self._is_listed_in_doubt, self._doubt_since = self._doubt_since is not None, None
        yield ListEnd()

    async def _watch(self, version: str) -> AsyncGenerator[Signal, None]:
        seconds = self._backoff.catch_up if self._is_behind else self._backoff.watch
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(round(seconds)),
        }
        async with self._client.get(self._kind.path, query, self._backoff.silence) as response:
            self._opened = time.monotonic()
            self._retries.reach()
            yield Confirmed([], not self._is_behind)
            arriving = Lines()
            async for chunk in response.content.iter_any():
                lines = arriving.take(chunk)
                if lines:
                    changes = self._changes(lines)
                    yield Confirmed(changes, not self._is_behind)
                    self._succeed()
                    del changes
                del chunk, lines  # it may be long until the next ones
        if self._version == version and self._lasted() < _SHORTEST_WATCH:
            raise RequestError("the watch ended at once")
        # The server had a whole watch to send the missed changes.
        self._succeed()
        if self._is_behind:
            self._is_behind = False
            yield Confirmed([])  # the next watch may break before it begins

    def _changes(self, lines: list[bytes]) -> list[Change]:
        """Return the changes on these lines, and move the version to the last of them."""
        events = [read_event(self._kind.name, line) for line in lines]
        self._version = events[-1].version or self._version
        if any(event.type == "BOOKMARK" for event in events):
            self._is_behind = False
        return [event for event in events if event.type != "BOOKMARK"]
