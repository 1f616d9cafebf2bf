"""How many pods a selector means on each node, kept up to date as pods come and go.

Counting 150,000 pods takes a tenth of a second, and pods of one hub ask for the same few counts. So
each count is made once and then follows every change, until it has not been asked for in a while.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from .labels import Selector
from .node_info import PodInfo

_KEPT = 32
"""Counts kept; each costs every change of a pod about a microsecond."""

_NODE = attrgetter("node")


class Meant(NamedTuple):
    """Pods that a selector means."""

    selector: Selector
    namespaces: frozenset[str] | None
    """None means all."""

    def includes(self, pod: PodInfo) -> bool:
        """Tell whether a pod is meant."""
        return (
            self.namespaces is None or pod.namespace in self.namespaces
        ) and self.selector.matches(pod.labels)


class Tally(NamedTuple):
    """Pods that all the selectors mean."""

    meant: tuple[Meant, ...]
    """At least one."""
    ending_too: bool
    """Whether pods that are being deleted count."""

    def includes(self, pod: PodInfo) -> bool:
        """Tell whether a pod counts."""
        if pod.terminating and not self.ending_too:
            return False
        for meant in self.meant:  # noqa: SIM110 (all() costs twice the time)
            if not meant.includes(pod):
                return False
        return True


class Tallies:
    """The counts in use, those not asked for the longest dropped first."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Tally, Counter[str]] = OrderedDict()

    def count(self, tally: Tally, pods: Iterable[PodInfo]) -> Counter[str]:
        """Return how many pods count on each node; never change it.

        Args:
            tally: what to count.
            pods: all pods in the namespaces of its first selector; read the first time only.
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
        """Count a pod that comes."""
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] += 1

    def discard(self, pod: PodInfo) -> None:
        """Stop counting a pod that goes."""
        for tally, counts in self._counts.items():
            if tally.includes(pod):
                counts[pod.node] -= 1
                if not counts[pod.node]:
                    del counts[pod.node]
