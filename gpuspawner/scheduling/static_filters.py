"""What is fixed about nodes, judged once per kind of pod and kept until a node changes.

Cordons, taints, labels and the devices a node has change seldom, and most pods of a hub ask for the
same few combinations. So their result is kept for each combination, and only nodes that changed
since are judged again.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from .failures import Failure, Failures, resolvable
from .node_info import NodeInfo
from .node_resources_fit import Asked, lacking
from .requests import Amounts

_T = TypeVar("_T")

Judge = Callable[[NodeInfo], Failure | None]

_KEPT = 64
"""Combinations kept; a hub offers fewer, and each takes a few hundred bytes a node."""

_SHAPES = 8
"""Sizes of request whose lacking resources are kept for each combination."""


class Unfit:
    """Nodes that something that may change keeps the pod from, and sums over them."""

    def __init__(self) -> None:
        self.failures: dict[str, Failures] = {}
        """Of each node."""
        self.reasons: Counter[str] = Counter()
        """How often each reason occurs."""
        self.freeable: dict[str, Failures] = {}
        """Those where only pods that could go are in the way."""
        self.generations: dict[str, int] = {}
        """Which state of a node the facts are of."""
        self._facts: dict[Failures, Failures] = {}

    def put(self, name: str, facts: Failures) -> None:
        """Take the newest facts of a node; none means that it fits."""
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
    """The nodes that pass a judge, and what the others fail for."""

    def __init__(self, judge: Judge, devices: Asked, stale: set[str]) -> None:
        """Start with no node judged.

        Args:
            judge: decides by what is fixed about a node.
            devices: extended resources asked for.
            stale: names of nodes to judge again; others add to it.
        """
        self._judge = judge
        self._devices = devices
        self.stale = stale
        self._judged: dict[str, tuple[NodeInfo, Failure | None]] = {}
        self.failing: Mapping[str, Failures] = {}
        """Nodes that do not pass; for all the pod is refused for good. Never changed, only
        replaced: verdicts hold on to it."""
        self.reasons: Mapping[str, int] = {}
        """How often each reason occurs among those."""
        self.passing: tuple[NodeInfo, ...] = ()
        """Nodes that pass, by name."""
        self.able: tuple[NodeInfo, ...] = ()
        """Those of them that have, free or not, the devices asked for, or may have them."""
        self.weak: tuple[NodeInfo, ...] = ()
        """Those that pass and have too few devices, but more of them when all are healthy."""
        self.facts: frozenset[Failures] = frozenset()
        """All that nodes fail for, each once."""
        self._lacking: dict[Asked, Unfit] = {}

    def lacking(self, asked: Asked) -> "Unfit":
        """Return the nodes that pass and lack resources.

        Kept for each node until a pod comes to it or goes. Use it at once and change nothing.
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
    """The screens in use, oldest dropped first."""

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
        """Return the up-to-date screen of a signature.

        Args:
            signature: the same for pods that `make_judge` and `devices` are the same for.
            nodes: all nodes.
            make_judge: called the first time.
            devices: extended resources asked for.
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
        """Return what was made for a signature, made again after any change of a node."""
        if signature not in self._kept:
            self._kept[signature] = make()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(signature)
        return cast("_T", self._kept[signature])

    def node_changed(self, name: str) -> None:
        """Have a node judged again."""
        self._kept.clear()
        for screen in self._screens.values():
            screen.stale.add(name)
