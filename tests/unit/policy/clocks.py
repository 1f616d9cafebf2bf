"""A clock that a test sets, instead of waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest


class Clock:
    """Stands in for `time.monotonic` in one module.

    Attributes:
        now: The time that it tells.
    """

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def clock_of(module: str) -> Callable[[pytest.MonkeyPatch], Clock]:
    """Return a fixture's function that puts a clock into a module that imports `time`."""

    def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
        made = Clock()
        monkeypatch.setattr(f"{module}.time", made)
        return made

    return clock
