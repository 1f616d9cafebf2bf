"""Ways to decide who gets GPUs that become free."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Protocol

from gpuspawner.kube.meta import Key
from gpuspawner.line.order import PART, Serving
from gpuspawner.line.tickets import Line, Ticket
from tests.simulation.cluster import Cluster

_NOWHERE: frozenset[str] = frozenset()
RELOAD_SECONDS = 5 * 60.0
"""How often half of the people reload the page at least: a guess, as no hub has measured it."""
RELOAD_SPREAD = 1.0
"""Of the logarithm: one in six reloads more than 2.7 times as often, and one as seldom."""


class Way(Protocol):
    """Decides who is served; a server starts by `Cluster.promise`."""

    def come(self, ticket: Ticket) -> None:
        """Note that somebody asks for a server."""

    def leave(self, ticket: Ticket) -> None:
        """Note that somebody gives up."""

    def served(self) -> list[Ticket]:
        """Start the servers whose turn it is at this moment."""

    def next_look(self) -> float:
        """When something may happen though nobody comes or ends; infinity if never."""


class InLine:
    """Our line: the earliest first, others whenever it doesn't fit, and few nodes are kept free."""

    def __init__(self, cluster: Cluster, part: float = PART) -> None:
        self._cluster = cluster
        self._serving = Serving(Line(), part)

    def come(self, ticket: Ticket) -> None:
        self._serving.join(ticket)

    def leave(self, ticket: Ticket) -> None:
        self._serving.leave(ticket)

    def served(self) -> list[Ticket]:
        return self._serving.serve(self._cluster, self._cluster.now)

    def next_look(self) -> float:
        return inf


class _ByArrival:
    """Looks at people in the order in which they came, whenever something has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[Key, Ticket] = {}

    def come(self, ticket: Ticket) -> None:
        self._waiting[ticket.key] = ticket

    def leave(self, ticket: Ticket) -> None:
        del self._waiting[ticket.key]

    def served(self) -> list[Ticket]:
        found = self._promised()
        for it in found:
            del self._waiting[it.key]
        return found

    def next_look(self) -> float:
        return inf

    def _promised(self) -> list[Ticket]:
        """Promise room to those whose turn it is; return them."""
        raise NotImplementedError


class InOrder(_ByArrival):
    """First in, first out: nobody gets a node that somebody ahead waits for.

    As in our line, those who can't use the same nodes don't wait for each other.
    """

    def _promised(self) -> list[Ticket]:
        found, awaited = [], _NOWHERE
        for it in self._waiting.values():
            reach = self._cluster.possible(it)
            if reach <= awaited:
                continue
            if self._cluster.promise(it, awaited):
                found.append(it)
            else:
                awaited |= reach
        return found


class BestEffort(_ByArrival):
    """Kueue's order: the earliest first, and others go ahead whenever it doesn't fit.

    That is a ClusterQueue with Kueue's default strategy, BestEffortFIFO, one priority and
    topology-aware scheduling, so that quota is given only where a node has room. With StrictFIFO
    nobody goes ahead, not even those who can't use the same nodes.

    Source: kueue.sigs.k8s.io, "Cluster Queue", queueing strategy (v0.15).
    """

    def _promised(self) -> list[Ticket]:
        found, refused = [], set()
        for it in self._waiting.values():
            if it.needs in refused:
                continue
            if self._cluster.promise(it, _NOWHERE):
                found.append(it)
            else:
                refused.add(it.needs)
        return found


class TryAgain:
    """Nobody waits: everybody reloads the page from time to time, some more often than others.

    The time between two looks of one person is exponentially distributed, so it doesn't matter when
    the last one was. So only the next look that finds room has to be drawn, anew after each change.
    """

    def __init__(self, cluster: Cluster, seconds: float = RELOAD_SECONDS) -> None:
        self._cluster = cluster
        self._dice = random.Random(1)
        self._seconds = seconds
        self._new: list[Ticket] = []
        self._waiting: dict[Key, Ticket] = {}
        self._rates: dict[Key, float] = {}
        self._look = inf

    def come(self, ticket: Ticket) -> None:
        self._new.append(ticket)
        self._waiting[ticket.key] = ticket
        self._rates[ticket.key] = self._dice.lognormvariate(0, RELOAD_SPREAD) / self._seconds

    def leave(self, ticket: Ticket) -> None:
        del self._waiting[ticket.key], self._rates[ticket.key]

    def served(self) -> list[Ticket]:
        looking, self._new = self._new, []
        if self._look <= self._cluster.now:
            looking += self._dice.choices(*self._who_would_find_room())
        found = [it for it in looking if self._cluster.promise(it, _NOWHERE)]
        for it in found:
            self.leave(it)
        rate = sum(self._who_would_find_room()[1])
        self._look = self._cluster.now + self._dice.expovariate(rate) if rate else inf
        return found

    def _who_would_find_room(self) -> tuple[list[Ticket], list[float]]:
        """Return those people, and how often each looks in a second."""
        needs = {it.needs: it for it in self._waiting.values()}
        fits = {key for key, it in needs.items() if self._cluster.fitting(it)}
        found = [it for it in self._waiting.values() if it.needs in fits]
        return found, [self._rates[it.key] for it in found]

    def next_look(self) -> float:
        return self._look


def ways(reload_seconds: float = RELOAD_SECONDS) -> dict[str, Callable[[Cluster], Way]]:
    """Return the ways that aren't ours, by name."""
    return {
        "try again later": lambda cluster: TryAgain(cluster, reload_seconds),
        "first in, first out": InOrder,
        "Kueue's order": BestEffort,
    }
