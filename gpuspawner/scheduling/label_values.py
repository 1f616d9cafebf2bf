"""Finds labels that differ on nearly each node, such as its host name."""

from collections import Counter
from collections.abc import Mapping

MOST_VALUES = 64
"""A label with more values than this, on the nodes at one moment, is individual."""


class LabelValues:
    """The values of each label key on all nodes.

    Attributes:
        individual: The keys that have had too many values, as long as a node has them.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self.individual: set[str] = set()
        self._nodes: Counter[str] = Counter()
        """How many nodes have each key."""
        self._values: dict[str, Counter[str]] = {}
        """How many nodes have each value, of keys that aren't individual."""

    def add(self, labels: Mapping[str, str]) -> bool:
        """Count the labels of one more node; return whether a key has become individual."""
        grown = False
        for key, value in labels.items():
            self._nodes[key] += 1
            if key not in self.individual:
                values = self._values.setdefault(key, Counter())
                values[value] += 1
                if len(values) > self._most:
                    self.individual.add(key)
                    del self._values[key]
                    grown = True
        return grown

    def discard(self, labels: Mapping[str, str]) -> None:
        """Stop counting the labels of a node."""
        for key, value in labels.items():
            self._nodes[key] -= 1
            if not self._nodes[key]:
                del self._nodes[key]
                self._values.pop(key, None)
                self.individual.discard(key)
            elif key not in self.individual:
                values = self._values[key]
                values[value] -= 1
                if not values[value]:
                    del values[value]
