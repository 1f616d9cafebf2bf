"""Groups nodes that static rules can't tell apart, so that each rule is asked once for all of them.

A cluster of 5,000 nodes has few kinds of nodes: those of a pool share their labels, taints and
devices. Labels that differ on nearly each node, such as its host name, belong to no kind. A pod
that asks for one of them divides each kind: into the nodes that have the values that it names, and
the rest.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from .node_info import NodeInfo
from .requests import Amounts, is_device

Alike = tuple[NodeInfo, ...]
"""Nodes that are alike in all that some rules read: at least one, sorted by name."""

MOST_VALUES = 64
"""A label with more values than this, on the nodes at one moment, is individual."""

_NUMBERS = itertools.count(1)

_NAME = attrgetter("name")

_OTHER = True
"""Any value that isn't named."""

_MOVED_AT_ONCE = 20
"""How many nodes a change moves to coarser kinds, so that no change takes long."""

_Traits = tuple[object, ...]


class Reads(NamedTuple):
    """What static rules read of a node, beside its cordon, taints and devices."""

    labels: Mapping[str, frozenset[str] | None]
    """The keys of labels, each with the values that make a difference; None means all values."""
    names: frozenset[str] = frozenset()
    """The names that make a difference."""


class NodeKind:
    """Nodes with the same cordon, taints, devices and labels, except for individual labels.

    Attributes:
        revision: Unique to these nodes with these labels; changes with them.
    """

    __slots__ = ("_sorted", "by_name", "revision", "traits")

    def __init__(self, traits: _Traits) -> None:
        self.traits = traits
        self.revision = 0
        self.by_name: dict[str, NodeInfo] = {}
        self._sorted: Alike | None = None

    def put(self, node: NodeInfo) -> None:
        """Add a node, or note that its labels have changed."""
        self.by_name[node.name] = node
        self._note_change()

    def drop(self, name: str) -> None:
        """Remove a node."""
        del self.by_name[name]
        self._note_change()

    def _note_change(self) -> None:
        self._sorted = None
        self.revision = next(_NUMBERS)

    @property
    def nodes(self) -> Alike:
        """All of them."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self.by_name.values(), key=_NAME))
        return self._sorted


class NodeKinds:
    """The kinds of the known nodes.

    Attributes:
        version: Increases whenever a kind or a label of a node changes.
    """

    def __init__(self, most_values: int = MOST_VALUES) -> None:
        """`most_values` is how many values a label may have before it belongs to no kind."""
        self.version = 0
        self._labels = LabelValues(most_values)
        self._kinds: dict[_Traits, NodeKind] = {}
        self._kind_of: dict[str, NodeKind] = {}
        self._labels_of: dict[str, Mapping[str, str]] = {}
        """The labels with which each node is in its kind."""
        self._to_move: list[str] = []
        """Nodes whose kinds may still depend on a label that has become individual."""

    def __iter__(self) -> Iterator[NodeKind]:
        return iter(self._kinds.values())

    def put(self, node: NodeInfo) -> None:
        """Take in a new or changed node; a known name comes with the same object."""
        had = self._labels_of.get(node.name)
        if had != node.labels:
            if had is not None:
                self._labels.discard(had)
            if self._labels.add(node.labels):
                self._to_move = list(self._kind_of)
        self._place(node)
        self._move_some()

    def drop(self, name: str) -> None:
        """Forget a node, if it is known."""
        had = self._labels_of.pop(name, None)
        if had is not None:
            self._labels.discard(had)
            self._leave(name, self._kind_of.pop(name))

    def alike(self, kind: NodeKind, reads: Reads) -> list[Alike]:
        """Divide a kind into groups that are alike in what is read.

        The groups stay the same until the kind's revision changes.
        """
        nodes, individual = kind.nodes, self._labels.individual
        read = [(key, values) for key, values in reads.labels.items() if key in individual]
        if len(nodes) == 1 or not (read or reads.names):
            return [nodes]
        groups: dict[tuple[object, ...], list[NodeInfo]] = {}
        for node in nodes:
            has = node.labels
            seen = [
                value
                if (value := has.get(key)) is None or values is None or value in values
                else _OTHER
                for key, values in read
            ]
            name = node.name if node.name in reads.names else _OTHER
            groups.setdefault((name, *seen), []).append(node)
        return [tuple(group) for group in groups.values()]

    def _move_some(self) -> None:
        for _ in range(min(_MOVED_AT_ONCE, len(self._to_move))):
            name = self._to_move.pop()
            if name in self._kind_of:
                self._place(self._kind_of[name].by_name[name])

    def _place(self, node: NodeInfo) -> None:
        """Put a node into its kind. A finer kind than necessary does no harm."""
        name, traits, labels = node.name, self._traits(node), node.labels
        kind = self._kind_of.get(name)
        if kind is None or kind.traits != traits:
            if kind is not None:
                self._leave(name, kind)
            kind = self._kind_of[name] = self._kinds.setdefault(traits, NodeKind(traits))
        elif self._labels_of[name] == labels:
            return
        kind.put(node)
        self._labels_of[name] = labels
        self.version += 1

    def _leave(self, name: str, kind: NodeKind) -> None:
        kind.drop(name)
        if not kind.by_name:
            del self._kinds[kind.traits]
        self.version += 1

    def _traits(self, node: NodeInfo) -> _Traits:
        known, individual = node.node, self._labels.individual
        return (
            known is not None and known.spec.unschedulable,
            node.taints,
            bool(node.problem),
            _devices(node.allocatable),
            _devices(node.capacity),
            frozenset(item for item in node.labels.items() if item[0] not in individual),
        )


def _devices(amounts: Amounts) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(item for item in amounts.items() if is_device(item[0])))


class LabelValues:
    """The values of each label key on all nodes: finds labels that differ on nearly each.

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
