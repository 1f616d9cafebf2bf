"""A mapping of bounded size, for what is remembered of clusters and people that never end."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """What was set last: beyond *most* entries, the one that was set longest ago is forgotten.

    Whoever calls `move_to_end` for each entry that is read forgets the one read longest ago.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

    def of(self, key: K, make: Callable[[], V]) -> V:
        """Return an entry, as if it were set now; make it if there is none."""
        self[key] = value = self[key] if key in self else make()
        return value


class KeptFor(Generic[K, V]):
    """What was kept last, each for so many *seconds*; *most* is as in `Recent`."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._kept = Recent[K, tuple[float, V]](most)

    def find(self, key: K) -> V | None:
        """Return what is still kept; None for nothing."""
        until, kept = self._kept.get(key, (0.0, None))
        return kept if time.monotonic() < until else None

    def keep(self, key: K, value: V) -> V:
        """Keep a value from now on, and return it."""
        self._kept[key] = time.monotonic() + self._seconds, value
        return value
