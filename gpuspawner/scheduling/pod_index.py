"""Indexes the pods on nodes by name, by namespace and by anti-affinity, and counts them.

Counting 150,000 pods takes a tenth of a second, and the pods of one hub need the same few counts.
So the index makes each count once and then updates it, until it hasn't been used for a while.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from gpuspawner.kube.caches import Recent

from .labels import Labels, PodTerm, Selector
from .node_info import PodInfo
from .storage_index import drop_from

Repelling = dict[PodTerm, Counter[str]]
"""Each term of required anti-affinity, with the number of pods on each node that have it."""


_KEPT = 32
"""Number of counts kept. Each adds about a microsecond to every change of a pod."""

_NODE = attrgetter("node")


class Meant(NamedTuple):
    """A selector for pods, with its namespaces."""

    selector: Selector
    namespaces: frozenset[str] | None
    """None means all."""

    def includes(self, pod: PodInfo) -> bool:
        """Return whether it matches a pod."""
        return (
            self.namespaces is None or pod.namespace in self.namespaces
        ) and self.selector.matches(pod.labels)


class Tally(NamedTuple):
    """The pods to count: those that match all of the selectors."""

    meant: tuple[Meant, ...]
    """At least one."""
    ending_too: bool
    """Whether pods that are being deleted count."""

    def includes(self, pod: PodInfo) -> bool:
        """Return whether a pod counts."""
        if pod.terminating and not self.ending_too:
            return False
        for meant in self.meant:  # noqa: SIM110 (all() costs twice the time)
            if not meant.includes(pod):
                return False
        return True


class PodIndex(Mapping[str, PodInfo]):
    """All pods on nodes by namespace/name."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, PodInfo]] = {}
        self._repelling: dict[str, Repelling] = {}
        """Anti-affinity terms of pods, by each namespace that a term names."""
        self._repelling_by_selector: Repelling = {}
        """Anti-affinity terms of pods that select namespaces by label."""
        self._counts = Recent[Tally, Counter[str]](_KEPT)
        """The kept counts; the least recently used is dropped first."""

    def __getitem__(self, key: str) -> PodInfo:
        return self._namespaces[key.partition("/")[0]][key]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._namespaces.values())

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def find(self, key: str) -> PodInfo | None:
        """Return a pod; None if it isn't indexed."""
        return self._namespaces.get(key.partition("/")[0], {}).get(key)

    def add(self, pod: PodInfo) -> None:
        """Index a pod that isn't indexed yet."""
        self._namespaces.setdefault(pod.namespace, {})[pod.key] = pod
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] += 1
        for term in pod.anti_affinity:
            for namespace in term.namespaces:
                _add(self._repelling.setdefault(namespace, {}), term, pod.node)
            if not term.namespace_selector.nothing:
                _add(self._repelling_by_selector, term, pod.node)

    def discard(self, key: str) -> PodInfo | None:
        """Drop a pod and return it, if it is indexed."""
        pod = self.find(key)
        if pod is None:
            return None
        drop_from(self._namespaces, pod.namespace, key)
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] -= 1
                if not counts[pod.node]:
                    del counts[pod.node]
        for term in pod.anti_affinity:
            for name in term.namespaces:
                _discard(self._repelling[name], term, pod.node)
                if not self._repelling[name]:
                    del self._repelling[name]
            if not term.namespace_selector.nothing:
                _discard(self._repelling_by_selector, term, pod.node)
        return pod

    def in_namespaces(self, names: Iterable[str] | None) -> Iterable[PodInfo]:
        """Return the pods of some namespaces; None means all."""
        if names is None:
            return chain.from_iterable(pods.values() for pods in self._namespaces.values())
        return chain.from_iterable(self._namespaces.get(name, {}).values() for name in names)

    def count(self, tally: Tally) -> Mapping[str, int]:
        """Return the number of matching pods on each node."""
        pods = self.in_namespaces(tally.meant[0].namespaces)
        return self._counts.of(tally, lambda: _counted(tally, pods))

    def repelling(self, namespace: str) -> Repelling:
        """Return the anti-affinity terms that may match pods of a namespace."""
        named = self._repelling.get(namespace, {})
        if not self._repelling_by_selector:
            return named
        return {**self._repelling_by_selector, **named}

    def repels_by_namespace_label(self, namespace: str, labels: Labels) -> bool:
        """Return whether any anti-affinity to a new pod depends on the labels of its namespace."""
        return any(
            not term.namespace_selector.empty
            and namespace not in term.namespaces
            and term.selector.matches(labels)
            for term in self._repelling_by_selector
        )


def _add(repelling: Repelling, term: PodTerm, node: str) -> None:
    repelling.setdefault(term, Counter())[node] += 1


def _discard(repelling: Repelling, term: PodTerm, node: str) -> None:
    nodes = repelling[term]
    nodes[node] -= 1
    if not nodes[node]:
        del nodes[node]
        if not nodes:
            del repelling[term]


def _counted(tally: Tally, pods: Iterable[PodInfo]) -> Counter[str]:
    first, *others = tally.meant
    found = _selected(first.selector, pods)
    if others or not tally.ending_too:
        found = [pod for pod in found if tally.includes(pod)]
    return Counter(map(_NODE, found))


def _selected(selector: Selector, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the pods that a selector selects. Fast enough for 150,000 of them."""
    if selector.nothing:
        return []
    for requirement in selector.requirements:
        key = requirement.key
        if requirement.operator == "In" and len(requirement.values) == 1:
            (value,) = requirement.values
            pods = [pod for pod in pods if pod.labels.get(key) == value]
        else:
            pods = [pod for pod in pods if requirement.matches(pod.labels)]
    return list(pods)
