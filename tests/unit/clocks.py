"""A clock that a test sets, instead of waiting."""

from __future__ import annotations

from collections.abc import Callable

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


def clock_of(module: str) -> Callable[[pytest.MonkeyPatch], Clock]:
    """Return a fixture's function that puts a clock into a module that imports `time`."""

    def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
        made = Clock()
        monkeypatch.setattr(f"{module}.time", made)
        return made

    return clock
