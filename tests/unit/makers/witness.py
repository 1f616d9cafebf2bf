"""A cluster that checks each start by the documented rules of the line, the slow way."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf

from gpuspawner.line.order import MARGIN_SECONDS, PART, PASSED_SECONDS, Serving
from gpuspawner.line.tickets import Line, Ticket
from tests.simulation.cluster import GPU, Cluster


class Witness(Cluster):
    """Checks that no start takes what somebody ahead collects, and who collects."""

    def __init__(self, nodes: Iterable[tuple[str, str, int]], part: float = PART) -> None:
        super().__init__(nodes)
        self.line = Line()
        self.serving = Serving(self.line, part)
        self.away: set[str] = set()
        """The nodes on which nothing can start now."""

    def fitting(self, ticket: Ticket) -> Collection[str]:
        return [name for name in super().fitting(ticket) if name not in self.away]

    def possible(self, ticket: Ticket) -> frozenset[str]:
        return super().possible(ticket) - self.away

    def start(self, ticket: Ticket, name: str) -> None:
        other = self.who_collects().get(name)
        if other is not None and other.precedence(self.now) < ticket.precedence(self.now):
            assert self._leaves_room(ticket, name, other), "somebody ahead is delayed"
        super().start(ticket, name)

    def who_collects(self) -> dict[str, Ticket]:
        """Return who collects, by node."""
        found = ((self.serving.collects_on(it), it) for it in self.line)
        return {node: it for node, it in found if node is not None}

    def may_collect(self, ticket: Ticket) -> bool:
        """Whether somebody may collect, if a node is left."""
        is_here = not self.line.is_held_back(ticket.key)
        waited = ticket.weight * (self.now - ticket.since)
        return is_here and (ticket.requests[GPU] > 1 or waited >= PASSED_SECONDS)

    def check_who_collects(self) -> None:
        """Check that those collect who may, and only they."""
        them = self.who_collects()
        assert len(them) == len(self.serving._kept_nodes._nodes)
        for node, it in them.items():
            assert self.may_collect(it)
            assert node in self.possible(it)
        for it in filter(self.may_collect, self.line):
            reach = self.possible(it)
            assert not reach or reach & them.keys(), "somebody could collect and doesn't"

    def _leaves_room(self, ticket: Ticket, name: str, other: Ticket) -> bool:
        free, needed = self.nodes[name].free, other.requests[GPU]
        if needed + ticket.requests[GPU] <= free:
            return True
        ends = self.now + (inf if ticket.lifetime is None else ticket.lifetime) + MARGIN_SECONDS
        return self._free_before(name, ends) < needed <= self._free_before(name, inf)

    def _free_before(self, name: str, time: float) -> int:
        """Return how many GPUs are free then, as far as known."""
        known = ((it.ends, it.gpus) for it in self.nodes[name].servers.values())
        ended = (gpus for ends, gpus in known if ends is not None and ends < time)
        return self.nodes[name].free + sum(ended)
