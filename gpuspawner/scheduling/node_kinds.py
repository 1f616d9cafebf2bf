"""Groups nodes that no static rule can tell apart, so that each rule is asked once for all of them.

A cluster of 5,000 nodes has few kinds of nodes: those of a pool share their labels, taints and
devices. What differs on each node, such as its host name, belongs to no kind. A pod that asks for
that divides each kind: into the nodes that have the values that it names, and the rest.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from .node_info import NodeInfo
from .requests import Amounts

_MOST_VALUES = 64
"""A label with more values than this, since the state began, is taken as different on each node."""

_NUMBERS = itertools.count(1)

_NAME = attrgetter("name")

_Traits = tuple[object, ...]

_OTHER = True
"""Any value that isn't named."""


class Reads(NamedTuple):
    """What static rules read of a node, beside its cordon, taints and devices."""

    labels: Mapping[str, frozenset[str] | None]
    """The keys of labels, each with the values that make a difference; None means all values."""
    names: frozenset[str] = frozenset()
    """The names that make a difference."""


class Alike(NamedTuple):
    """Nodes that are alike in all that some rules read."""

    key: tuple[object, ...]
    """Equal for nodes about which these rules say the same."""
    nodes: tuple[NodeInfo, ...]
    """At least one, sorted by name."""


class _Kind:
    """The nodes of one kind."""

    __slots__ = ("_alike", "nodes", "number", "traits")

    def __init__(self, traits: _Traits) -> None:
        self.traits = traits
        self.number = next(_NUMBERS)
        self.nodes: dict[str, NodeInfo] = {}
        self._alike: Alike | None = None

    def put(self, node: NodeInfo) -> None:
        self.nodes[node.name] = node
        self._alike = None

    def drop(self, name: str) -> None:
        del self.nodes[name]
        self._alike = None

    @property
    def alike(self) -> Alike:
        if self._alike is None:
            nodes = tuple(sorted(self.nodes.values(), key=_NAME))
            self._alike = Alike((self.number,), nodes)
        return self._alike

    def divided(self, reads: Reads) -> Iterator[Alike]:
        """Divide the nodes by these labels and names."""
        groups: dict[tuple[object, ...], list[NodeInfo]] = {}
        read, names = tuple(reads.labels.items()), reads.names
        for node in self.alike.nodes:
            labels = node.labels
            seen = [
                value
                if (value := labels.get(key)) is None or values is None or value in values
                else _OTHER
                for key, values in read
            ]
            name = node.name if node.name in names else _OTHER
            groups.setdefault((self.number, name, *seen), []).append(node)
        for key, nodes in groups.items():
            yield Alike(key, tuple(nodes))


class NodeKinds:
    """The kinds of the known nodes. A change of a node costs some microseconds."""

    def __init__(self, most_values: int = _MOST_VALUES) -> None:
        """`most_values` is how many values a label may have before it belongs to no kind."""
        self._most_values = most_values
        self._kinds: dict[_Traits, _Kind] = {}
        self._kind_of: dict[str, _Kind] = {}
        self._values: dict[str, set[str]] = {}
        """The values of each label key, while they are few."""
        self._individual: set[str] = set()
        """Label keys that have had too many values."""
        self._version = 0
        """Increases when a kind gets or loses a node."""
        self._revision = 0
        """Increases with every change of a node."""

    def put(self, node: NodeInfo) -> None:
        """Take in a new or changed node; a known name must come with the same object."""
        self._revision += 1
        if self._learn(node.labels):
            for other in [it for kind in self._kinds.values() for it in kind.nodes.values()]:
                self._place(other)
        self._place(node)

    def drop(self, name: str) -> None:
        """Forget a node, if it is known."""
        self._revision += 1
        self._leave(name)

    def stamp(self, reads: Reads) -> tuple[bool, int]:
        """Return a value that changes whenever `alike` may return other groups."""
        if self._divides(reads):
            return True, self._revision
        return False, self._version

    def alike(self, reads: Reads) -> Iterable[Alike]:
        """Group all nodes so that those of a group are alike in what is read."""
        if not self._divides(reads):
            return [kind.alike for kind in self._kinds.values()]
        individual = {key: reads.labels[key] for key in self._individual & reads.labels.keys()}
        divisive = reads._replace(labels=individual)
        return chain.from_iterable(kind.divided(divisive) for kind in self._kinds.values())

    def _divides(self, reads: Reads) -> bool:
        return bool(reads.names) or not self._individual.isdisjoint(reads.labels)

    def _learn(self, labels: Mapping[str, str]) -> bool:
        """Note the values of labels; return whether a key has got too many."""
        grown = False
        for key, value in labels.items():
            if key not in self._individual:
                values = self._values.setdefault(key, set())
                values.add(value)
                if len(values) > self._most_values:
                    self._individual.add(key)
                    del self._values[key]
                    grown = True
        return grown

    def _place(self, node: NodeInfo) -> None:
        traits = self._traits(node)
        now = self._kind_of.get(node.name)
        if now is not None and now.traits == traits:
            return
        self._leave(node.name)
        kind = self._kinds.get(traits)
        if kind is None:
            kind = self._kinds[traits] = _Kind(traits)
        kind.put(node)
        self._kind_of[node.name] = kind
        self._version += 1

    def _leave(self, name: str) -> None:
        kind = self._kind_of.pop(name, None)
        if kind is None:
            return
        kind.drop(name)
        if not kind.nodes:
            del self._kinds[kind.traits]
        self._version += 1

    def _traits(self, node: NodeInfo) -> _Traits:
        known, individual = node.node, self._individual
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
