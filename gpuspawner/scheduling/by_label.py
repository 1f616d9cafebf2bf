"""Finds among many selectors those that may match a node, without trying each."""

import heapq
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Generic, TypeVar

from .labels import Labels, Selector

_T = TypeVar("_T")

_Value = tuple[str, str]
"""A label's key and value."""

_NUMBER = itemgetter(0)


class ByLabel(Generic[_T]):
    """Things in an order, each with the selector of the nodes that have it.

    A cluster with storage on its nodes has a volume or a capacity for each of them. To try all of
    these on all nodes would hold up the hub, but most require one value of a label.
    """

    def __init__(self, things: Iterable[tuple[Selector, _T]] = ()) -> None:
        self._things: dict[_Value | None, list[tuple[int, _T]]] = {}
        for number, (selector, thing) in enumerate(things):
            self._things.setdefault(_required(selector), []).append((number, thing))
        self._keys = {value[0] for value in self._things if value is not None}

    def __len__(self) -> int:
        return sum(map(len, self._things.values()))

    def near(self, labels: Labels) -> Iterator[_T]:
        """Yield in their order all things whose selectors match the labels, and a few others."""
        values = (None, *((key, labels[key]) for key in self._keys if key in labels))
        found = (self._things.get(value, ()) for value in values)
        return (thing for _, thing in heapq.merge(*found, key=_NUMBER))


def _required(selector: Selector) -> _Value | None:
    """Return a label without which a selector matches nothing; None if it names no such label."""
    for it in selector.requirements:
        if it.operator == "In" and len(it.values) == 1:
            return it.key, next(iter(it.values))
    return None
