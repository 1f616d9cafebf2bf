"""A mapping of bounded size, for what is remembered of clusters and people that never end."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

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
