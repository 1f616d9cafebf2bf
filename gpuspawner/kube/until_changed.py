"""Results that hold until something changes that they depend on."""

import math
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
