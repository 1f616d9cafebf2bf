"""Work that goes on in a thread of its own while a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[], None], over: threading.Event | None = None) -> Iterator[None]:
    """Do *work* beside the block, set *over* at its end, and wait until the work has ended.

    If the work fails, so does the block.
    """
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work)
        try:
            yield
        finally:
            if over is not None:
                over.set()
            done.result()
