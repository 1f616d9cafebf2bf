"""What is remembered of a cluster: the last few things, or until something changes."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
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


_Value = TypeVar("_Value")


class UntilChanged(Generic[_Value]):
    """Keeps results by key, and forgets all of them when the version changes.

    A version is that of everything that the results depend on, except what is in their keys.

    Args:
        most: How many results are kept; one more, and all others are forgotten.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._version: object = None
        self._kept: dict[Hashable, _Value] = {}

    def find(self, version: object, *keys: Hashable) -> _Value | None:
        """Return the result of this version for the first of these keys that has one."""
        if self._version != version:
            return None
        return next((self._kept[key] for key in keys if key in self._kept), None)

    def keep(self, version: object, key: Hashable, value: _Value) -> _Value:
        """Keep a result of this version, and return it."""
        if self._version != version or len(self._kept) >= self._most:
            self._version = version
            self._kept.clear()
        self._kept[key] = value
        return value

    def of(self, version: object, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return the result of this version for a key; make and keep it if there is none."""
        if self._version == version and key in self._kept:
            return self._kept[key]
        return self.keep(version, key, make())
