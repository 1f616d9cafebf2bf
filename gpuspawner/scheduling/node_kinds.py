"""Groups nodes that static rules can't tell apart, so that each rule is asked once for all of them.

A cluster of 5,000 nodes has few kinds of nodes: those of a pool share their labels, taints and
devices. Labels that differ on nearly each node, such as its host name, belong to no kind. A pod
that asks for one of them divides each kind: into the nodes that have the values that it names, and
the rest.
"""

import itertools
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from .label_values import MOST_VALUES, LabelValues
from .node_info import NodeInfo
from .requests import Amounts

Alike = tuple[NodeInfo, ...]
"""Nodes that are alike in all that some rules read: at least one, sorted by name."""

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

    __slots__ = ("_nodes", "_sorted", "revision", "traits")

    def __init__(self, traits: _Traits) -> None:
        self.traits = traits
        self.revision = 0
        self._nodes: dict[str, NodeInfo] = {}
        self._sorted: Alike | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, node: NodeInfo) -> None:
        """Add a node, or note that its labels have changed."""
        self._nodes[node.name] = node
        self._note_change()

    def drop(self, name: str) -> None:
        """Remove a node."""
        del self._nodes[name]
        self._note_change()

    def _note_change(self) -> None:
        self._sorted = None
        self.revision = next(_NUMBERS)

    @property
    def nodes(self) -> Alike:
        """All of them."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self._nodes.values(), key=_NAME))
        return self._sorted

    def divided(
        self, labels: Mapping[str, frozenset[str] | None], names: frozenset[str]
    ) -> list[Alike]:
        """Divide the nodes by their names, and by labels (as in `Reads`)."""
        nodes = self.nodes
        if len(nodes) == 1 or not (labels or names):
            return [nodes]
        groups: dict[tuple[object, ...], list[NodeInfo]] = {}
        read = tuple(labels.items())
        for node in nodes:
            has = node.labels
            seen = [
                value
                if (value := has.get(key)) is None or values is None or value in values
                else _OTHER
                for key, values in read
            ]
            name = node.name if node.name in names else _OTHER
            groups.setdefault((name, *seen), []).append(node)
        return [tuple(group) for group in groups.values()]


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
        self._placed: dict[str, tuple[NodeInfo, Mapping[str, str], NodeKind]] = {}
        """Each node by name, with its labels and its kind."""
        self._to_move: list[str] = []
        """Nodes whose kinds may still depend on a label that has become individual."""

    def __iter__(self) -> Iterator[NodeKind]:
        return iter(self._kinds.values())

    def put(self, node: NodeInfo) -> None:
        """Take in a new or changed node."""
        known = self._placed.get(node.name)
        if known is None or known[1] != node.labels:
            if known is not None:
                self._labels.discard(known[1])
            if self._labels.add(node.labels):
                self._to_move = list(self._placed)
        self._place(node)
        self._move_some()

    def drop(self, name: str) -> None:
        """Forget a node, if it is known."""
        known = self._placed.pop(name, None)
        if known is not None:
            self._labels.discard(known[1])
            self._leave(name, known[2])

    def alike(self, kind: NodeKind, reads: Reads) -> list[Alike]:
        """Divide a kind into groups that are alike in what is read.

        The groups stay the same until the kind's revision changes.
        """
        labels = {key: it for key, it in reads.labels.items() if key in self._labels.individual}
        return kind.divided(labels, reads.names)

    def _move_some(self) -> None:
        for _ in range(min(_MOVED_AT_ONCE, len(self._to_move))):
            known = self._placed.get(self._to_move.pop())
            if known is not None:
                self._place(known[0])

    def _place(self, node: NodeInfo) -> None:
        """Put a node into its kind. A finer kind than necessary does no harm."""
        traits, labels = self._traits(node), node.labels
        there, had, now = self._placed.get(node.name, (None, None, None))
        if now is not None and now.traits == traits:
            if there is node and had == labels:
                return
            kind = now
        else:
            if now is not None:
                self._leave(node.name, now)
            kind = self._kinds.setdefault(traits, NodeKind(traits))
        kind.put(node)
        self._placed[node.name] = node, labels, kind
        self.version += 1

    def _leave(self, name: str, kind: NodeKind) -> None:
        kind.drop(name)
        if not len(kind):
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
    return tuple(sorted(item for item in amounts.items() if "/" in item[0]))
