"""Waiting for a condition; nothing sleeps for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until a test gives up what is to come at once; a busy machine may stand still."""


def wait_for(condition: Callable[[], T | None], timeout: float = PATIENCE) -> T:
    """Return the first true answer of a condition; None is none.

    Raises:
        TimeoutError: there was none within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s; at last: {answer!r}")
        time.sleep(0.02)
    return answer
