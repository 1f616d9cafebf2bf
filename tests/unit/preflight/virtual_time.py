"""Time that stands still while somebody works, and jumps over each wait."""

from __future__ import annotations

import asyncio
import selectors
import time

from tests.unit.clocks import Clock


class VirtualClock(Clock):
    """Stands in for `time`, for the modules under test and for their event loops.

    Attributes:
        worked: The processor time that it tells, in seconds; only a test adds to it.
    """

    time = staticmethod(time.time)

    def __init__(self) -> None:
        super().__init__()
        self.worked = 0.0

    def thread_time(self) -> float:
        return self.worked


CLOCK = VirtualClock()


class _Jumping(selectors.SelectSelector):
    """Sets the clock forward instead of waiting until then."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout if timeout is None else 0)
        if timeout and not found:
            CLOCK.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in which an hour passes at once, if nobody has anything to do before."""

    def __init__(self) -> None:
        super().__init__(_Jumping())

    def time(self) -> float:
        return CLOCK.now
