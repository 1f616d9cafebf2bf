"""Waiting for a condition; nothing sleeps for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until a test gives up waiting; a busy machine may stand still for a while."""
UNIT_PATIENCE = 10.0
"""The same for a unit test, which waits for no other process; a red one is to end soon."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
"""Seconds between two looks: each takes time that the awaited could use."""


def wait_for(condition: Callable[[], T | None], timeout: float = PATIENCE) -> T:
    """Wait until a condition returns a true value, and return that value.

    Raises:
        TimeoutError: it returned none within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout:g} s; at last: {answer!r}")
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)
    return answer
