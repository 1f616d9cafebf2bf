"""List, then watch, for ever: one kind of object as a stream of signals.

The protocol is that of the Kubernetes documentation, "Kubernetes API Concepts" (efficient
detection of changes, bookmarks, retrieving large results sets in chunks, 410 Gone):

- A list comes in pages; the next watch starts at the list's resourceVersion.
- A watch that ends (the server's time-out, a broken connection, a restarted server) is taken up at
  the last version seen, without a list; bookmarks keep that version young.
- 410 Gone, as a status or as an ERROR event, means that the history is lost: list again. Whoever
  consumes the signals then drops what the new list no longer has, so a gap loses nothing.

`signals` contains the two endless halves `_list` and `_watch`, and these contain the reading of
pages (`cluster/pages.py`) and lines. Nothing here knows what a Node or a Pod is.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace

import aiohttp
import msgspec

from gpuspawner.cluster.client import Client, RequestError, Status
from gpuspawner.cluster.pages import ListMeta, pages
from gpuspawner.kube.objects import ODDITIES

# An object is at most about 1.5 MB in etcd and managed fields count; a longer line is no object.
_LONGEST_LINE = 8 * 1024 * 1024
_GONE = 410
# 410: the version is too old. 403: a right was withdrawn; whatever it covered must be read anew.
_HISTORY_LOST = (403, _GONE)
# A server that answers, and yet so often in a row with an error, may not know the version at all:
# its data was restored from an older copy, say. One that does not answer loses no history by that.
_MOST_FAILURES = 10
# A watch that ends sooner and has brought nothing is a failure: asking again at once would be a
# tight loop.
_SHORTEST_WATCH = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take and how soon they are tried again, in seconds.

    Attributes:
        page: Silence after which a page is given up.
        watch: What the server is asked to end a watch after. Short, so that every connection is
            proved to be alive at least that often; taking up a watch costs next to nothing.
        silence: Silence after which a watch is given up; longer than `watch`.
        first_retry: The longest wait after a first failure; doubled with each further one.
        last_retry: What that doubling ends at.
    """

    page: float = 30.0
    watch: float = 60.0
    silence: float = 75.0
    first_retry: float = 0.5
    last_retry: float = 8.0

    def unhurried(self) -> "Pace":
        """For what may well be forbidden for good, so that it does not fill the server's logs."""
        return replace(self, last_retry=10 * self.last_retry)

    def before_retry(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, with full jitter.

        Many hubs and a restarting API server must not meet in step.
        """
        longest = min(self.last_retry, self.first_retry * 2.0 ** min(failures - 1, 16))
        return random.uniform(longest / 4, longest)  # noqa: S311 - jitter is no secret


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, still encoded; `first` where a new list begins."""

    items: list[msgspec.Raw]
    first: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """The list is whole: what was in none of its pages does not exist."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch: ``ADDED``, ``MODIFIED`` or ``DELETED``, and the encoded object."""

    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The API server has said that everything is known up to now, after these changes."""

    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Lost:
    """Contact was lost: `error` says how. It is being tried again.

    With a `gap` the history is lost too, so the next signal is the first page of a new list.
    """

    error: RequestError
    gap: bool


Signal = Page | Listed | Confirmed | Lost


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, gc=False):
    metadata: ListMeta


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_version = msgspec.json.Decoder(_Versioned).decode
_decode_status = msgspec.json.Decoder(Status).decode


class Watcher:
    """Follows all objects at one path.

    Args:
        client: Where to ask.
        path: The collection, such as ``/api/v1/pods``.
        field_selector: Which of them, "" for all.
        pace: Time-outs and back-off.
    """

    def __init__(
        self, client: Client, path: str, field_selector: str = "", pace: Pace | None = None
    ) -> None:
        self._client = client
        self._path = path
        self._query = {"fieldSelector": field_selector} if field_selector else {}
        self._pace = pace or Pace()
        # Where the next watch starts; None where only a list can tell.
        self._version: str | None = None
        self._failures = 0

    async def signals(self) -> AsyncGenerator[Signal, None]:
        """Everything that happens, for ever; every failure becomes a `Lost`."""
        while True:
            try:
                async with aclosing(self._list_or_watch()) as signals:
                    async for signal in signals:
                        yield signal
            except RequestError as error:
                self._failures += 1
                if self._has_lost_history(error):
                    self._version = None
                yield Lost(error, gap=self._version is None)
                wait = self._pace.before_retry(self._failures)
                await asyncio.sleep(max(error.retry_after, wait))

    def _has_lost_history(self, error: RequestError) -> bool:
        # At every tenth: where lists can be had and watches cannot, each list costs its time again.
        in_vain = error.status is not None and self._failures % _MOST_FAILURES == 0
        return error.status in _HISTORY_LOST or in_vain

    def _list_or_watch(self) -> AsyncGenerator[Signal, None]:
        return self._list() if self._version is None else self._watch(self._version)

    async def _list(self) -> AsyncGenerator[Signal, None]:
        version, first = "", True
        async with aclosing(pages(self._client, self._path, self._query, self._pace.page)) as parts:
            async for page in parts:
                yield Page(page.items or [], first)
                version, first = page.metadata.resource_version, False
        if not version:
            raise RequestError("the list has no resourceVersion to watch from")
        self._version = version
        yield Listed()

    async def _watch(self, version: str) -> AsyncGenerator[Signal, None]:
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(round(self._pace.watch)),
        }
        started = time.monotonic()
        async with self._client.get(self._path, query, self._pace.silence) as response:
            yield Confirmed([])
            async for lines in _lines(response.content):
                yield Confirmed(self._changes(lines))
                self._failures = 0
        if self._version == version and time.monotonic() - started < _SHORTEST_WATCH:
            raise RequestError("the watch ended at once")
        self._failures = 0

    def _changes(self, lines: list[bytes]) -> list[Change]:
        """The events on these lines; moves the version to the last of them.

        Raises:
            RequestError: One of them was an ERROR event, or no event at all.
        """
        events = [_decoded_event(line) for line in lines if line.strip()]
        for event in events:
            if event.type == "ERROR":
                raise _error(event)
        if events:
            self._version = _version(events[-1]) or self._version
        return [Change(event.type, event.object) for event in events if event.type != "BOOKMARK"]


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
    """The whole lines of each piece that arrives; what is cut off at the end is dropped."""
    begun: list[bytes] = []
    length = 0
    async for chunk in content.iter_any():
        lines, newline, rest = chunk.rpartition(b"\n")
        if newline:
            yield b"".join((*begun, lines)).split(b"\n")
            begun, length = [], 0
        begun.append(rest)
        length += len(rest)
        if length > _LONGEST_LINE:
            raise _unreadable("a line of the watch is longer than any object can be")


def _decoded_event(line: bytes) -> _Event:
    try:
        return _decode_event(line)
    except ODDITIES as error:
        raise _unreadable(f"the answer is no watch event: {error}") from error


def _unreadable(text: str) -> RequestError:
    """What was to be read here would come again, the same, at the next watch: so list instead."""
    return RequestError(text, _GONE)


def _version(event: _Event) -> str:
    try:
        return _decode_version(event.object).metadata.resource_version
    except ODDITIES:
        return ""


def _error(event: _Event) -> RequestError:
    try:
        status = _decode_status(event.object)
    except ODDITIES:
        status = Status()
    return RequestError(f"the watch ended: {status.message or 'no reason given'}", status.code)
