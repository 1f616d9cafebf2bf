"""Limits how many streams are open, in total and for each client."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST_OF_ONE = 4
"""Streams for one client. Over HTTP/1.1 a browser has six connections to a host for all its
windows: some must stay free for pages and questions."""
MOST = 5_000
"""Streams in all. Each takes about 35 kB of the hub's memory."""


class TooManyStreamsError(Exception):
    """No more streams can be open right now."""


class Crowd:
    """The open streams by client. Another one of the same client ends the client's oldest."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._of: dict[object, deque[Callable[[], None]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @contextmanager
    def place(self, client: object, leave: Callable[[], None]) -> Iterator[None]:
        """Count a stream while the block runs; *leave* tells it to end early.

        Raises:
            TooManyStreamsError: There are too many in all.
        """
        if self._size >= self._most:
            raise TooManyStreamsError
        theirs = self._of.setdefault(client, deque())
        theirs.append(leave)
        self._size += 1
        try:
            if len(theirs) > self._most_of_one:
                theirs.popleft()()
            yield
        finally:
            self._size -= 1
            if leave in theirs:
                theirs.remove(leave)
            if not theirs and self._of.get(client) is theirs:
                del self._of[client]
