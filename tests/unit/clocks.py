"""A clock that a test sets, instead of waiting."""

from __future__ import annotations


class Clock:
    """Stands in for `time.monotonic` where a clock is an argument.

    Attributes:
        now: The time that it tells.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
