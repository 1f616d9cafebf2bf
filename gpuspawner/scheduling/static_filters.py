"""Static filters: rules about nodes whose results are kept until a node changes.

Cordons, taints, labels and devices of nodes rarely change, and most pods of a hub share a few
combinations of requirements. So this module keeps the result of each combination, and judges only
the changed nodes again.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

from .failures import Failure, Failures, resolvable
from .node_info import NodeInfo
from .node_resources_fit import Asked, lacking
from .requests import Amounts

_T = TypeVar("_T")

Judge = Callable[[NodeInfo], Failure | None]

_KEPT = 64
"""Number of combinations kept. A hub offers fewer. Each takes a few hundred bytes per node."""

_SHAPES = 8
"""Number of request sizes per combination whose lacking resources are kept."""


class Unfit:
    """Nodes that pass the static rules but fail a later rule."""

    def __init__(self) -> None:
        self.failures: dict[str, Failures] = {}
        self.reasons: Counter[str] = Counter()
        self.freeable: dict[str, Failures] = {}
        """Nodes where removing pods could resolve all failures."""
        self.generations: dict[str, int] = {}
        """The generation of each node when it was judged."""
        self._facts: dict[Failures, Failures] = {}

    def put(self, name: str, facts: Failures) -> None:
        """Store the newest failures of a node; empty if it fits."""
        for fact in self.failures.pop(name, ()):
            self.reasons[fact.reason] -= 1
        self.freeable.pop(name, None)
        if not facts:
            return
        facts = self._facts.setdefault(facts, facts)  # thousands of nodes fail alike
        self.failures[name] = facts
        for fact in facts:
            self.reasons[fact.reason] += 1
        if resolvable(facts):
            self.freeable[name] = facts


class Screen:
    """The nodes that pass the static rules, and the failures of the others."""

    def __init__(self, judge: Judge, devices: Asked, stale: set[str]) -> None:
        """Start with no node judged; callers add to `stale` the names of nodes to judge again."""
        self._judge = judge
        self._devices = devices
        self.stale = stale
        self._judged: dict[str, tuple[NodeInfo, Failure | None]] = {}
        self.failing: Mapping[str, Failures] = {}
        """Nodes that don't pass; removing pods doesn't help there. Verdicts keep it, so it is
        replaced and never changed."""
        self.reasons: Mapping[str, int] = {}
        self.passing: tuple[NodeInfo, ...] = ()
        """Nodes that pass, sorted by name."""
        self.able: tuple[NodeInfo, ...] = ()
        """Passing nodes with enough of the requested devices, free or not, or with unknown ones."""
        self.weak: tuple[NodeInfo, ...] = ()
        """Passing nodes that have enough of the requested devices only if all are healthy."""
        self.facts: frozenset[Failures] = frozenset()
        """The distinct failures in `failing`."""
        self._lacking: dict[Asked, Unfit] = {}

    def lacking(self, asked: Asked) -> "Unfit":
        """Return the passing nodes that lack resources. Use it immediately, and don't change it.

        The result of a node is kept until its pods change.
        """
        kept = self._lacking.get(asked)
        if kept is None:
            if len(self._lacking) >= _SHAPES:
                self._lacking.clear()
            kept = self._lacking[asked] = Unfit()
        generations = kept.generations
        for node in self.passing:
            if generations.get(node.name) != node.generation:
                generations[node.name] = node.generation
                kept.put(node.name, lacking(asked, node.free, node.allocatable))
        return kept

    def passing_of(self, names: Iterable[str]) -> list[NodeInfo]:
        """Return those of these nodes that pass, sorted by name."""
        known = (self._judged[name] for name in sorted(names) if name in self._judged)
        return [node for node, failure in known if failure is None]

    def refresh(self, nodes: Mapping[str, NodeInfo]) -> None:
        """Judge the stale nodes."""
        if not self.stale:
            return
        for name in self.stale:
            node = nodes.get(name)
            if node is None:
                self._judged.pop(name, None)
            else:
                self._judged[name] = (node, self._judge(node))
        self.stale.clear()
        self._sort()

    def _sort(self) -> None:
        failing: dict[str, Failures] = {}
        passing: list[NodeInfo] = []
        facts: dict[Failure, Failures] = {}
        for name in sorted(self._judged):
            node, failure = self._judged[name]
            if failure is None:
                passing.append(node)
            else:
                failing[name] = facts.setdefault(failure, (failure,))
        self.failing = failing
        self.facts = frozenset(facts.values())
        self.reasons = Counter(facts[0].reason for facts in failing.values())
        self._lacking.clear()  # some of its nodes may be gone
        self.passing = tuple(passing)
        self.able = tuple(node for node in passing if node.problem or self._has(node.allocatable))
        self.weak = tuple(
            node for node in passing if not self._has(node.allocatable) and self._has(node.capacity)
        )

    def _has(self, amounts: Amounts) -> bool:
        return all(amounts.get(name, 0) >= amount for name, amount in self._devices)


class Screening:
    """The kept screens; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._screens: OrderedDict[bytes, Screen] = OrderedDict()
        self._kept: OrderedDict[bytes, object] = OrderedDict()

    def screen(
        self,
        signature: bytes,
        nodes: Mapping[str, NodeInfo],
        make_judge: Callable[[], Judge],
        devices: Asked,
    ) -> Screen:
        """Return the up-to-date screen of a signature; `make_judge` is called only for a new one.

        Pods with equal static rules and equal `devices`, the requested extended resources, have
        equal signatures.
        """
        screen = self._screens.get(signature)
        if screen is None:
            screen = self._screens[signature] = Screen(make_judge(), devices, set(nodes))
            if len(self._screens) > _KEPT:
                self._screens.popitem(last=False)
        self._screens.move_to_end(signature)
        screen.refresh(nodes)
        return screen

    def kept(self, signature: bytes, make: Callable[[], _T]) -> _T:
        """Return the value kept for a signature; make it again after any change of a node."""
        if signature not in self._kept:
            self._kept[signature] = make()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(signature)
        return cast("_T", self._kept[signature])

    def node_changed(self, name: str) -> None:
        """Mark a node for judging again."""
        self._kept.clear()
        for screen in self._screens.values():
            screen.stale.add(name)
