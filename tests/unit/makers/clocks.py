"""Clocks that a test sets, or that jump over each wait."""

from __future__ import annotations

import selectors
import time
from typing import Any

import pytest


class Clock:
    """Stands in for `time` in one module, or for a function that tells the time.

    Args:
        now: The time that it tells, in seconds.

    Attributes:
        now: As above.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    __call__ = monotonic


class VirtualClock(Clock):
    """Time that stands still while somebody works, and jumps over each wait of an event loop.

    It stands in for the clocks of all modules, and so of all event loops, but not where a function
    has `time.monotonic` as the default of a parameter.

    Attributes:
        worked: The processor time that it tells, in seconds; only a test adds to it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__(float(int(time.monotonic())))  # sums of whole seconds are exact
        self.worked = 0.0
        select = selectors.DefaultSelector.select

        def jump(selector: selectors.DefaultSelector, timeout: float | None = None) -> list[Any]:
            found = select(selector, timeout if timeout is None else 0)
            if timeout and not found:
                self.now += timeout
            return found

        patch.setattr(time, "monotonic", self.monotonic)
        patch.setattr(time, "thread_time", lambda: self.worked)
        patch.setattr(selectors.DefaultSelector, "select", jump)
