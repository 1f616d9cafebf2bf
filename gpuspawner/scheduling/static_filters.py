"""Static filters: rules about nodes whose results are kept until a node changes.

Cordons, taints, labels and devices of nodes rarely change, and most pods of a hub share a few
combinations of requirements. So this module keeps the result of each combination. It judges each
kind of nodes once, not each node.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

from gpuspawner.kube.caches import Recent

from .failures import Failure, Failures
from .node_info import NodeInfo
from .node_kinds import Alike, NodeKind, NodeKinds, Reads
from .node_resources_fit import Asked
from .requests import Amounts
from .unfit_nodes import Lacking, Unfit

_T = TypeVar("_T")

_KEPT = 64
"""Number of combinations kept. A hub offers fewer. Each takes a few hundred bytes per node."""

_SHAPES = 8
"""Number of request sizes per combination whose lacking resources are kept."""

_NAME = attrgetter("name")

_Judged = tuple[Alike, Failure | None]
"""Nodes that are alike, and why the rules exclude them; None if they don't."""


class StaticRules(NamedTuple):
    """The static rules of one pod."""

    judge: Callable[[NodeInfo], Failure | None]
    """Returns why they exclude a node; None if they don't."""
    reads: Reads
    """What `judge` reads of a node."""
    devices: Asked
    """The extended resources that the pod requests."""

    def enough(self, amounts: Amounts) -> bool:
        """Return whether amounts contain all the devices."""
        for name, amount in self.devices:  # noqa: SIM110 (all() costs twice the time)
            if amounts.get(name, 0) < amount:
                return False
        return True


class Screened:
    """The nodes at one moment, sorted by the static rules."""

    def __init__(self, rules: StaticRules, judged: Iterable[_Judged]) -> None:
        self._rules = rules
        passing: list[Alike] = []
        excluded: dict[Failure, list[Alike]] = {}
        for nodes, failure in judged:
            if failure is None:
                passing.append(nodes)
            else:
                excluded.setdefault(failure, []).append(nodes)
        self._passing = passing
        self.excluded = {
            (failure,): tuple(chain.from_iterable(groups)) for failure, groups in excluded.items()
        }
        """Nodes that don't pass, by their failures."""
        self._lacking = Recent[Asked, Lacking](_SHAPES)

    @cached_property
    def failing(self) -> Mapping[str, Failures]:
        """The failures of the nodes that don't pass; removing pods doesn't help there."""
        failing: dict[str, Failures] = {}
        for facts, nodes in self.excluded.items():
            failing.update(dict.fromkeys(map(_NAME, nodes), facts))
        return failing

    @cached_property
    def reasons(self) -> Counter[str]:
        """The number of nodes for each reason in `failing`."""
        reasons: Counter[str] = Counter()
        for (failure,), nodes in self.excluded.items():
            reasons[failure.reason] += len(nodes)
        return reasons

    @cached_property
    def passing(self) -> tuple[NodeInfo, ...]:
        """Nodes that pass, sorted by name."""
        return _by_name(self._passing)

    @cached_property
    def able(self) -> tuple[NodeInfo, ...]:
        """Passing nodes with enough of the requested devices, free or not, or with unknown ones."""
        enough = self._rules.enough
        return _by_name(
            nodes for nodes in self._passing if nodes[0].problem or enough(nodes[0].allocatable)
        )

    @cached_property
    def weak(self) -> tuple[NodeInfo, ...]:
        """Passing nodes that have enough of the requested devices only if all are healthy."""
        enough = self._rules.enough
        return _by_name(
            nodes
            for nodes in self._passing
            if not enough(nodes[0].allocatable) and enough(nodes[0].capacity)
        )

    def lacking(self, asked: Asked) -> Unfit:
        """Return the passing nodes that lack resources. Use it immediately, and don't change it.

        The result of a node is kept until its pods change.
        """
        kept = self._lacking.of(asked, lambda: Lacking(asked))
        kept.refresh(self.passing)
        return kept

    def passing_of(self, names: Iterable[str]) -> list[NodeInfo]:
        """Return those of these nodes that pass, sorted by name."""
        known = self._by_name
        return [known[name] for name in sorted(names) if name in known]

    @cached_property
    def _by_name(self) -> dict[str, NodeInfo]:
        return {node.name: node for nodes in self._passing for node in nodes}


class Screen:
    """The newest result of the static rules of some pods."""

    def __init__(self, rules: StaticRules) -> None:
        self._rules = rules
        self._version = -1
        self._judged: dict[int, list[_Judged]] = {}
        """The results of each kind, by its revision."""
        self._screened = Screened(rules, ())

    def screened(self, kinds: NodeKinds) -> Screened:
        """Sort the nodes; judge only the kinds that have changed."""
        if kinds.version != self._version:
            known = self._judged
            self._judged = {
                it.revision: known.get(it.revision) or self._judge(kinds, it) for it in kinds
            }
            self._screened = Screened(self._rules, chain.from_iterable(self._judged.values()))
            self._version = kinds.version
        return self._screened

    def _judge(self, kinds: NodeKinds, kind: NodeKind) -> list[_Judged]:
        judge = self._rules.judge
        return [(nodes, judge(nodes[0])) for nodes in kinds.alike(kind, self._rules.reads)]


class Screening:
    """The kept screens; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._screens = Recent[bytes, Screen](_KEPT)
        self._kept = Recent[bytes, object](_KEPT)

    def screened(
        self, signature: bytes, kinds: NodeKinds, make_rules: Callable[[], StaticRules]
    ) -> Screened:
        """Sort the nodes by the rules of a signature; `make_rules` is called only for a new one.

        Pods with equal static rules, and equal `devices` in them, have equal signatures.
        """
        return self._screens.of(signature, lambda: Screen(make_rules())).screened(kinds)

    def kept(self, signature: bytes, make: Callable[[], _T]) -> _T:
        """Return the value kept for a signature; make it again after any change of a node."""
        return cast("_T", self._kept.of(signature, make))

    def node_changed(self) -> None:
        """Drop what was made from the nodes."""
        self._kept.clear()


def _by_name(groups: Iterable[Alike]) -> tuple[NodeInfo, ...]:
    return tuple(sorted(chain.from_iterable(groups), key=_NAME))
