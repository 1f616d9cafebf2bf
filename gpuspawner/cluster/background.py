"""Long work on the hub's event loop that gives way to everything else there."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds by the clock. A request that arrives during a turn waits for its end. If others have long
# turns themselves, ours get longer, so that the work takes a sixth of a busy hub's time.
_TURN, _LONGEST_TURN = 0.001, 0.01
# Seconds of processor time. A round of the loop that takes less had nothing else to do: it costs
# some 50 µs by itself.
_FREE_ROUND = 0.0002
# What others get between two turns, if the loop is never free: five times as much as we, so the
# work also ends in a hub that has always something to do.
_OTHERS_PARTS = 5
_OTHERS_SHARE = _OTHERS_PARTS * _TURN
# The same for others that need little in each round, as a request does while it is read.
_OTHERS_ROUNDS = 20


class Background:
    """Work of several tasks that takes turns: only one of them works between two rounds.

    A task works inside of ``async with``, from one call of `end_turn_if_long` to the next. After a
    turn it waits for a round of the loop in which nothing else had to be done, and then until the
    tasks that have waited longer have had a turn. So a request that is being answered meets one
    turn at most each time it waits for something outside of the loop, and not one in each of its
    own steps; and an event of one kind doesn't wait for a whole list of another.

    It works in one event loop.
    """

    def __init__(self) -> None:
        self._working = asyncio.Lock()
        self._worker: asyncio.Task[object] | None = None
        self._began = 0.0
        self._turn = _TURN

    async def __aenter__(self) -> None:
        await self._begin()

    async def __aexit__(self, *_: object) -> None:
        if self._worker is asyncio.current_task():  # not if cancelled while another one works
            self._end()

    async def end_turn_if_long(self) -> None:
        """Let others run if the turn has been long, and begin the next one."""
        if time.perf_counter() - self._began > self._turn:
            given = await _give_way()
            self._turn = min(max(_TURN, given / _OTHERS_PARTS), _LONGEST_TURN)
            self._end()
            await self._begin()

    async def _begin(self) -> None:
        await self._working.acquire()
        self._worker = asyncio.current_task()
        self._began = time.perf_counter()

    def _end(self) -> None:
        self._worker = None
        self._working.release()


async def _give_way() -> float:
    """Wait for a round of the loop without other work, or until others have had their share.

    Return how much processor time they have taken, in seconds.
    """
    given = 0.0
    for _ in range(_OTHERS_ROUNDS):
        before = time.thread_time()
        await asyncio.sleep(0)
        taken = time.thread_time() - before
        given += taken
        if taken < _FREE_ROUND or given > _OTHERS_SHARE:
            break
    return given


# For work outside of `Background`, such as that for a page: a limit of its own for each turn.


class Turn:
    """How long this task has held the event loop.

    Args:
        seconds: The longest that it may hold the loop. If many tasks do the same work at once, the
            loop is held for this time by each.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = time.perf_counter()

    async def end_if_long(self) -> None:
        """Let other tasks run if the turn has been long, and begin the next one."""
        if time.perf_counter() - self._started > self._seconds:
            await asyncio.sleep(0)
            self._started = time.perf_counter()


RESTS = 9
"""How many times as long as work that is repeated again and again the hub does something else."""

# For looks that each of many tasks repeats, as those of starts that wait for a node.

_SHORT_LOOK = 0.005
"""In seconds. Longer looks are followed by a rest."""
_LEFT_SECONDS = 1.5
"""Whoever hasn't asked for so long has ended: each asks at least every second."""


class TurnsToLook:
    """Spaces the looks of all who wait, so that the hub does other work most of the time.

    In a cluster of thousands of nodes that always changes, each look takes a tenth of a second. Who
    has waited longest is next.

    Args:
        wake: Wakes all who wait, as soon as it is somebody's turn.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waking: asyncio.TimerHandle | None = None
        self._next = 0.0
        self._asked: dict[object, float] = {}

    def is_turn_of(self, who: object) -> bool:
        """Whether it is somebody's turn, who otherwise waits for one."""
        now = time.monotonic()
        self._asked[who] = now
        while now - self._asked[first := next(iter(self._asked))] > _LEFT_SECONDS:
            del self._asked[first]
        if now < self._next:
            self._wake_in(self._next - now)
        return first is who and now >= self._next

    @contextmanager
    def taken_by(self, who: object) -> Iterator[None]:
        """Let the next turn come after a rest that depends on how long this one takes."""
        del self._asked[who]
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        rest = RESTS * took if took > _SHORT_LOOK else 0.0
        self._next = time.monotonic() + rest
        if self._asked:
            self._wake_in(rest)

    def leave(self, who: object) -> None:
        """Note that somebody waits no longer."""
        self._asked.pop(who, None)

    def _wake_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._waking is None or self._waking.when() <= loop.time():
            self._waking = loop.call_later(seconds, self._wake)
