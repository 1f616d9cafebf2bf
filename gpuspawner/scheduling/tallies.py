"""Counts the pods on each node that match a selector, kept up to date as pods come and go.

Counting 150,000 pods takes a tenth of a second, and the pods of one hub need the same few counts.
So this module makes each count once and then updates it, until it hasn't been used for a while.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from .labels import Selector
from .node_info import PodInfo

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


class Tallies:
    """The kept counts; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Tally, Counter[str]] = OrderedDict()

    def count(self, tally: Tally, pods: Iterable[PodInfo]) -> Counter[str]:
        """Return the number of matching pods on each node. Don't change the result.

        Args:
            tally: the pods to count.
            pods: all pods in the namespaces of its first selector; read only for a new tally.
        """
        counts = self._counts.get(tally)
        if counts is None:
            first, *others = tally.meant
            found = first.selector.select(pods)
            if others or not tally.ending_too:
                found = [pod for pod in found if tally.includes(pod)]
            counts = self._counts[tally] = Counter(map(_NODE, found))
            if len(self._counts) > _KEPT:
                self._counts.popitem(last=False)
        self._counts.move_to_end(tally)
        return counts

    def add(self, pod: PodInfo) -> None:
        """Count a new pod."""
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] += 1

    def discard(self, pod: PodInfo) -> None:
        """Stop counting a pod."""
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] -= 1
                if not counts[pod.node]:
                    del counts[pod.node]
