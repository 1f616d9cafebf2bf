"""Sends each open form what it shows, whenever that has changed.

However many forms show the same, the hub finds it out once, and keeps the bytes. Nothing runs while
no form is open.
"""

import asyncio
import json
import logging
import math
import time
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from tornado import web

from gpuspawner.cluster.background import Turn
from gpuspawner.preflight.token_bucket import Clock
from gpuspawner.runtime import Runtime
from gpuspawner.start.refusal import Refusal
from gpuspawner.web.open_form import OpenForm
from gpuspawner.web.open_streams import Stream

log = logging.getLogger(__name__)

# When the hub looks at the cluster for open forms: at once after a quiet time, then seldom.

LEAST_REST, MOST_REST = 0.5, 0.8
"""Seconds between a look and the next one, whatever changes meanwhile. A change is shown within a
second, so the rest is no longer."""
SHARE = 1 / 20
"""How much of a core looks may take, as long as their rest isn't the longest."""
AT_LEAST_EVERY = 5.0
"""Seconds between looks if nobody tells of a change: some things change by time alone."""


class Rhythm:
    """Says when to look next."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._rested_at = self._again_at = clock()
        self._is_noted = False
        self._wished_at = math.inf

    def note(self) -> bool:
        """Note a change; return whether it is the first one since the last look."""
        is_first, self._is_noted = not self._is_noted, True
        return is_first

    def begin(self) -> None:
        """Note that a look begins: it sees all changes until now."""
        self._is_noted = False
        self._wished_at = math.inf

    def wish(self, at: float) -> None:
        """Ask for a look at a time of the clock, if none comes before."""
        self._wished_at = min(self._wished_at, at)

    def end(self, seconds: float) -> None:
        """Note that a look has ended, which took so much processor time."""
        now = self._clock()
        self._rested_at = now + min(MOST_REST, max(LEAST_REST, seconds / SHARE))
        self._again_at = now + AT_LEAST_EVERY

    def due(self) -> float:
        """Return in how many seconds the next look is due; 0 for now."""
        wished = max(self._rested_at, self._wished_at)
        at = self._rested_at if self._is_noted else min(self._again_at, wished)
        return max(0.0, at - self._clock())


# The looks, and what they answer.

_TURN_SECONDS = 0.002
_TEND_SECONDS = 5.0
_PATIENCE = 0.02
"""How long, in seconds, the first slow answer of a look may hold the other forms."""
_ANSWER_SECONDS = 10.0
"""How long an answer may take until the form had better ask by itself."""
_ANSWERS_AT_ONCE = 4
_RENEWALS_AT_ONCE = 16
_RENEWAL_SECONDS = 5.0
"""How long an administrator's function may take until the form stays as it is."""
_ALONE_MOST = 10.0
"""The longest rest between two looks for one form alone, in seconds."""
_ALONE_SHARE = 1 / 10
"""How much of a core all looks for single forms may take, as long as their rest isn't longest."""
_SPREAD_EACH, _SPREAD_LEAST, _SPREAD_MOST = 20, 300, 20_000
"""Milliseconds over which forms spread what they ask next: for each open form, and the bounds."""


class Broadcast:
    """All open streams of a hub."""

    def __init__(self, runtime: Runtime) -> None:
        self._streams: dict[Stream, None] = {}
        self._newcomers: list[Stream] = []
        self._events: dict[Hashable, bytes] = {}
        self._rhythm = Rhythm()
        self._woken = asyncio.Event()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._answering: dict[Stream, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_ANSWERS_AT_ONCE)
        self._renewals: set[asyncio.Task[None]] = set()
        self._checks_fail = False
        self._renewing = asyncio.Semaphore(_RENEWALS_AT_ONCE)
        runtime.view.listen(self._note)
        if runtime.accounts is not None:
            runtime.accounts.usage.listen(lambda *_: self._note())

    async def follow(self, stream: Stream) -> bytes | None:
        """Send a stream its events until it ends; return its last message."""
        self._streams[stream] = None
        self._newcomers.append(stream)
        self._woken.set()
        if all(it.done() for it in self._tasks):
            self._begin()
        try:
            return await stream.ended
        finally:
            stream.lose()
            del self._streams[stream]
            if task := self._answering.get(stream):
                task.cancel()
            if not self._streams:
                self._stop()

    def _begin(self) -> None:
        self._events.clear()
        self._note()
        loop = asyncio.get_running_loop()
        self._tasks = loop.create_task(self._run()), loop.create_task(self._tend())

    def _stop(self) -> None:
        tasks, self._tasks = self._tasks, ()
        for task in (*tasks, *self._answering.values(), *self._renewals):
            task.cancel()
        self._events.clear()

    def _note(self) -> None:
        """Note that something has changed; called for each change of the cluster."""
        if self._rhythm.note():
            self._woken.set()

    async def _run(self) -> None:
        while True:
            await self._until_due()
            newcomers, self._newcomers = self._newcomers, []
            try:
                await (self._show(newcomers) if self._rhythm.due() else self._look())
            except Exception:
                log.exception("Showing the cluster on open forms failed")
                await asyncio.sleep(MOST_REST)

    async def _until_due(self) -> None:
        while not self._newcomers and (due := self._rhythm.due()):
            self._woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._woken.wait()

    async def _look(self) -> None:
        """Find out anew what is shown, and send it to those that show something else."""
        self._rhythm.begin()
        self._events = {}
        began = time.thread_time()
        try:
            await self._show(tuple(self._streams))
        finally:
            self._rhythm.end(time.thread_time() - began)

    async def _show(self, streams: Iterable[Stream]) -> None:
        before = _spread(len(self._streams))
        turn, patience = Turn(_TURN_SECONDS), _PATIENCE
        for stream in streams:
            await turn.end_if_long()
            if stream.ended.done() or stream in self._answering:
                continue
            if (event := self._known(stream)) is not None:
                stream.show(event, before)
                continue
            task = asyncio.create_task(self._show_one(stream, before))
            self._answering[stream] = task
            task.add_done_callback(partial(self._answered, stream))
            await asyncio.wait((task,), timeout=patience)
            if not task.done():
                patience = 0.0  # the others don't wait for many

    def _answered(self, stream: Stream, _: object) -> None:
        self._answering.pop(stream, None)

    def _known(self, stream: Stream) -> bytes | None:
        try:
            return self._events.get(stream.form.question())
        except Exception:  # noqa: BLE001, `_show_one` ends the stream
            return None

    async def _show_one(self, stream: Stream, before: bytes) -> None:
        """Show one form what nobody knows yet; an administrator's function may take its time."""
        with _ending(stream, "An open form can't be kept current"):
            try:
                async with self._slots, asyncio.timeout(_ANSWER_SECONDS):
                    event = await self._event(stream)
            except TimeoutError:
                stream.leave()
            else:
                if event is not None:
                    stream.show(event, before)

    async def _event(self, stream: Stream) -> bytes | None:
        """Return what a form shows; None if that isn't to be found out again yet."""
        question: object = stream.form.question()
        event = self._events.get(question)
        if event is not None:
            return event
        now, began, events = time.monotonic(), time.thread_time(), self._events
        if now < stream.rests_until:
            self._rhythm.wish(stream.rests_until)
            self._woken.set()
            return None
        answer = await stream.form.answer()
        event = b"data: " + json.dumps(answer.found).encode() + b"\n\n"
        if answer.for_all and question is not stream.form:
            events[question] = event  # of the look that asked
        else:
            took = (time.thread_time() - began) * len(self._streams) / _ALONE_SHARE
            stream.rests_until = now + min(_ALONE_MOST, took)
        return event

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(_TEND_SECONDS)
            turn = Turn(_TURN_SECONDS)
            for stream in tuple(self._streams):
                await turn.end_if_long()
                stream.tend()
                if stream.is_to_check():
                    self._check(stream)
                if stream.is_to_renew():
                    task = asyncio.create_task(self._renew(stream, stream.form))
                    self._renewals.add(task)
                    task.add_done_callback(self._renewals.discard)

    def _check(self, stream: Stream) -> None:
        """End a stream whose client has lost its rights, or whose rights can't be read."""
        try:
            stream.check()
            self._checks_fail = False
        except Exception:
            if not self._checks_fail:
                log.exception("The rights of open forms can't be checked")
            self._checks_fail = True
            stream.end()

    async def _renew(self, stream: Stream, form: OpenForm) -> None:
        with _ending(stream, "An open form can't be read anew"):
            try:
                async with self._renewing, asyncio.timeout(_RENEWAL_SECONDS):
                    if not stream.ended.done():
                        await form.renew()
            except TimeoutError:
                return
        self._note()


@contextmanager
def _ending(stream: Stream, fault: str) -> Iterator[None]:
    """End a stream whose form can't be read; its next request is answered with the reason."""
    try:
        yield
    except (web.HTTPError, Refusal):
        stream.end()
    except Exception:
        log.exception(fault)
        stream.end()


def _spread(streams: int) -> bytes:
    """Return the time over which clients spread their next requests, as SSE's `retry`."""
    return b"retry: %d\n" % min(_SPREAD_MOST, max(_SPREAD_LEAST, _SPREAD_EACH * streams))
