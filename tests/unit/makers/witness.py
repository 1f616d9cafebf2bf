"""A cluster that checks each start by the documented rules of the line, the slow way."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf

from gpuspawner.line.holds import MARGIN_SECONDS
from gpuspawner.line.line import Line, Ticket
from gpuspawner.line.serving import Serving
from tests.simulation.cluster import GPU, Cluster


class Witness(Cluster):
    """Checks that no start takes what is held for somebody ahead, and that they all hold a node."""

    def __init__(self, nodes: Iterable[tuple[str, str, int]]) -> None:
        super().__init__(nodes)
        self.line = Line()
        self.serving = Serving(self.line)
        self.away: set[str] = set()
        """The nodes on which nothing can start now."""

    def fitting(self, ticket: Ticket) -> Collection[str]:
        return [name for name in super().fitting(ticket) if name not in self.away]

    def possible(self, ticket: Ticket) -> frozenset[str]:
        return super().possible(ticket) - self.away

    def start(self, ticket: Ticket, name: str) -> None:
        ahead = self._ahead_of(ticket)
        for it in ahead:
            assert name not in self.possible(it) or self._has_a_node(it), "somebody holds no node"
        holders = [it for it in ahead if self._node_of(it) == name]
        assert self._leaves_room(ticket, name, holders), "somebody ahead is delayed"
        super().start(ticket, name)

    def check_holds(self) -> None:
        """Check that only those hold nodes who may be called, and that no list only grows."""
        here = {it.key for it in self.line if not self.line.is_away(it.key)}
        assert self.serving._holds._nodes.keys() <= here
        for plan in self.serving._plans._plans.values():
            assert len(plan.candidates or ()) <= 2 * len(plan.reach)

    def _ahead_of(self, ticket: Ticket) -> list[Ticket]:
        now = self.serving.moment(self.now)
        place = ticket.precedence(now)
        here = (it for it in self.line if not self.line.is_away(it.key))
        return [it for it in here if it.precedence(now) < place]

    def _node_of(self, ticket: Ticket) -> str | None:
        return self.serving._holds.node(ticket.key)

    def _has_a_node(self, ticket: Ticket) -> bool:
        """Whether somebody holds a node, or each one is full of what those ahead hold."""
        reach, node = self.possible(ticket), self._node_of(ticket)
        if node in reach:
            return not self._is_full(node, ticket)
        return all(self._is_full(it, ticket) for it in reach)

    def _is_full(self, name: str, ticket: Ticket) -> bool:
        holders = (it for it in self._ahead_of(ticket) if self._node_of(it) == name)
        return sum(it.requests[GPU] for it in (*holders, ticket)) > self.nodes[name].gpus

    def _leaves_room(self, ticket: Ticket, name: str, holders: list[Ticket]) -> bool:
        free, own = self.nodes[name].free, ticket.requests[GPU]
        if sum(it.requests[GPU] for it in holders) + own <= free:
            return True
        ends = self.now + (inf if ticket.lifetime is None else ticket.lifetime) + MARGIN_SECONDS
        least = min(it.requests[GPU] for it in holders)
        return self._free_before(name, ends) < least <= self._free_before(name, inf)

    def _free_before(self, name: str, time: float) -> int:
        """Return how many GPUs are free then, as far as known."""
        known = ((it.ends, it.gpus) for it in self.nodes[name].servers.values())
        ended = (gpus for ends, gpus in known if ends is not None and ends < time)
        return self.nodes[name].free + sum(ended)
