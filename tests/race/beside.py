"""Work that goes on in a thread of its own while a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Do *work* beside the block, set *over* at its end, and wait until the work has ended."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
