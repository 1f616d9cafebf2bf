"""Nodes that pass the static rules but fail a later rule, most of them because they are in use."""

from collections import Counter
from collections.abc import Iterable

from .failures import Failures, resolvable
from .node_info import NodeInfo
from .node_resources_fit import Asked, lacking
from .requests import PODS

_MOST_SHARED = 4096
"""Number of failures kept for one size of requests; nodes in use may all lack different amounts."""

_NOTHING: Asked = (("", 0),)
"""What a pod without requests asks for: nothing of a resource that doesn't exist."""


class _Shared:
    """Failures that many nodes share."""

    __slots__ = ("facts", "reasons", "resolvable")

    def __init__(self, facts: Failures) -> None:
        self.facts = facts
        self.reasons = _reasons(facts)
        self.resolvable = resolvable(facts)


def _reasons(facts: Failures) -> tuple[str, ...]:
    return tuple(fact.reason for fact in facts)


class Unfit:
    """The nodes, with their failures."""

    def __init__(self) -> None:
        self.failures: dict[str, Failures] = {}
        self.freeable: dict[str, Failures] = {}
        """Nodes where removing pods could resolve all failures."""
        self._shared: dict[Failures, _Shared] = {}
        self._counts = Counter[tuple[str, ...]]()
        """How many nodes fail for the same reasons."""

    @property
    def reasons(self) -> Counter[str]:
        """The number of nodes for each reason."""
        found: Counter[str] = Counter()
        for reasons, nodes in self._counts.items():
            for reason in reasons:
                found[reason] += nodes
        return found

    def put(self, name: str, facts: Failures) -> None:
        """Store the failures of a node that has none yet; empty if it fits."""
        if facts:
            self._add(name, self._share(facts))

    def _share(self, facts: Failures) -> _Shared:
        shared = self._shared.get(facts)
        if shared is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            shared = self._shared[facts] = _Shared(facts)
        return shared

    def _drop(self, name: str) -> None:
        self._counts[_reasons(self.failures.pop(name))] -= 1
        self.freeable.pop(name, None)

    def _add(self, name: str, shared: _Shared) -> None:
        self.failures[name] = shared.facts
        self._counts[shared.reasons] += 1
        if shared.resolvable:
            self.freeable[name] = shared.facts


class Lacking(Unfit):
    """The nodes that lack resources for one size of requests."""

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self._asked = asked
        self._first, self._others = (asked or _NOTHING)[0], (*asked[1:], (PODS, 1))
        self._generations: dict[str, int] = {}
        """The generation of each node when it was judged."""
        self._lacks_first: dict[tuple[int, int], _Shared] = {}
        """The failures of nodes that lack only the first resource: by what is free and allocatable.

        Thousands of nodes lack the same, and to build their failures costs most of the time.
        """

    def refresh(self, nodes: Iterable[NodeInfo]) -> None:
        """Judge those nodes again whose resources have changed."""
        generations, failures = self._generations, self.failures
        for node in nodes:
            name, generation = node.name, node.generation
            if generations.get(name) != generation:
                generations[name] = generation
                if name in failures:
                    self._drop(name)
                shared = self._judged(node)
                if shared is not None:
                    self._add(name, shared)

    def _judged(self, node: NodeInfo) -> _Shared | None:
        """Return what a node lacks; None if it has enough."""
        free, allocatable = node.free, node.allocatable
        for resource, amount in self._others:
            if free.get(resource, 0) < amount:
                return self._share(lacking(self._asked, free, allocatable))
        resource, amount = self._first
        has = free.get(resource, 0)
        if has >= amount:
            return None
        key = has, allocatable.get(resource, 0)
        shared = self._lacks_first.get(key)
        if shared is None:
            if len(self._lacks_first) >= _MOST_SHARED:
                self._lacks_first.clear()
            shared = self._lacks_first[key] = self._share(lacking(self._asked, free, allocatable))
        return shared
