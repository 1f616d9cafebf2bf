"""Who is next, and which nodes are kept for whom.

The earliest is next, and others whenever it doesn't fit, but not on a node it collects on. The
earliest is the one who has waited longest, by weight.

A server that needs four GPUs of one node would never get them if each GPU that becomes free went to
somebody who needs one. So it collects on one node, which those behind it pass only if that delays
nobody. Everywhere else they go ahead, so few nodes collect at a time: the more do, the more GPUs
are idle.
"""

import heapq
from collections.abc import Hashable, Iterable
from math import inf

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import LaneKey, Line, Precedence, Room, Ticket
from gpuspawner.scheduling.requests import Amounts

PART = 0.25
"""On which part of the nodes that a server could use others collect at most, or else on one.

The tables of docs/explanation/line-simulation.md compare parts: with a half, the mean wait in a
production cluster's trace more than doubles.
"""
PASSED_SECONDS = 2 * 3600.0
"""For how long a server is passed that doesn't need several GPUs of one node.

Usually it gets the next GPU, and needs to collect nothing. But others would pass one for ever that
needs more memory than any single server gives back. In the simulation of the docs, half of the
people give up within two hours; there, one hour or twelve make no difference.
"""
MARGIN_SECONDS = 120.0
"""What a pod may take beyond its lifetime: to start before it counts, and to end."""


class KeptNodes:
    """One node for each ticket that collects, and one ticket for each node.

    A ticket has its node until it is gone, or can't use the node any more.

    Args:
        part: As `PART`.
    """

    def __init__(self, part: float = PART) -> None:
        self._part = part
        self._tickets: dict[str, Ticket] = {}
        self._nodes: dict[Key, str] = {}
        self._ranked: dict[Hashable, list[str]] = {}
        """Nodes in the order in which to collect there, by needs; the best is the last."""

    def node(self, key: Key) -> str | None:
        """Return the node on which a ticket collects; None if it doesn't."""
        return self._nodes.get(key)

    def release(self, key: Key) -> None:
        """Let others have a ticket's node, if it has one."""
        node = self._nodes.pop(key, None)
        if node is not None:
            del self._tickets[node]
            self._ranked.clear()

    def look_anew(self, room: Room) -> None:
        """Look at all nodes again: a ticket stops collecting on one where it can't fit any more."""
        self._ranked.clear()
        for node, ticket in list(self._tickets.items()):
            if node not in room.possible(ticket):
                self.release(ticket.key)

    def collects(self, ticket: Ticket, room: Room, now: float) -> bool:
        """Whether a ticket collects on a node; it begins to, if it may and a node is left for it.

        It takes the one on which it can start first by known ends, or most of what it needs is
        free.
        """
        if ticket.key in self._nodes:
            return True
        if not ticket.needs_several and ticket.weighted_wait(now) < PASSED_SECONDS:
            return False
        reach = room.possible(ticket)
        if len(self._tickets.keys() & reach) >= max(1, int(self._part * len(reach))):
            return False
        nodes = self._ranked.get(ticket.needs)
        if nodes is None:
            nodes = self._ranked[ticket.needs] = _ranked(reach, ticket.requests, room)
        while nodes:
            node = nodes.pop()
            if node not in self._tickets:
                self._nodes[ticket.key], self._tickets[node] = node, ticket
                return True
        return False

    def leaves_room(self, ticket: Ticket, node: str, room: Room, now: float) -> bool:
        """Whether a server can start on a node without delaying one ahead that collects there.

        Either it takes only what that one doesn't need, or it surely ends before that one has all
        that it needs by the known ends of other servers.
        """
        other = self._tickets.get(node)
        if other is None or other.key == ticket.key:  # who would leave the line for this start
            return True
        if other.precedence(now) >= ticket.precedence(now):
            return True
        if _leaves(room.unpromised(node), other.requests, ticket.requests):
            return True
        if ticket.lifetime is None:
            return False
        start = _start(node, other.requests, room)
        return start < inf and ticket.lifetime + MARGIN_SECONDS <= start


def _ranked(nodes: Iterable[str], needed: Amounts, room: Room) -> list[str]:
    def distance(node: str) -> tuple[float, float, str]:
        return _start(node, needed, room), -_part(room.unpromised(node), needed), node

    return sorted(nodes, key=distance, reverse=True)


def _start(node: str, needed: Amounts, room: Room) -> float:
    """Return in how many seconds a node has all this by known ends; infinity if never.

    What is promised to others, maybe in this very look, isn't free.
    """
    free = room.unpromised(node)
    if _has(free, needed):
        return 0.0
    left = dict(free)
    for end in room.ends(node):
        for resource, amount in end.amounts.items():
            left[resource] = left.get(resource, 0) + amount
        if _has(left, needed):
            return end.seconds
    return inf


def _has(free: Amounts, needed: Amounts) -> bool:
    """Whether there is enough; who needs nothing of a resource also fits where less is left."""
    return all(not amount or amount <= free.get(it, 0) for it, amount in needed.items())


def _leaves(free: Amounts, needed: Amounts, taken: Amounts) -> bool:
    """Whether enough is left of what is taken; what isn't taken doesn't matter."""
    together = {it: amount + needed.get(it, 0) for it, amount in taken.items() if amount}
    return _has(free, together)


def _part(free: Amounts, needed: Amounts) -> float:
    """Return which part of what is needed is free: the smallest part over all resources."""
    return min((free.get(it, 0) / amount for it, amount in needed.items() if amount), default=inf)


# Who is next.

_Heads = list[tuple[Precedence, LaneKey, int]]
"""A heap of the next ticket of each lane, by its place in the lane."""


class Serving:
    """Calls tickets, and lets some that stay collect on nodes.

    Args:
        line: A ticket that is called leaves it. Only this changes it.
        part: On which part of the nodes tickets collect, as `PART`.
    """

    def __init__(self, line: Line, part: float = PART) -> None:
        self._line = line
        self._kept_nodes = KeptNodes(part)

    def join(self, ticket: Ticket) -> None:
        """Add a ticket; it replaces one of the same server, which collects nothing any more."""
        self._kept_nodes.release(ticket.key)
        self._line.join(ticket)

    def renew(self, ticket: Ticket) -> None:
        """Let a ticket replace one of the same server, which isn't held back and keeps its node."""
        self._line.join(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket, and let others have its node."""
        self._line.leave(ticket.key)
        self._kept_nodes.release(ticket.key)

    def hold_back(self, ticket: Ticket) -> None:
        """Call a ticket no more, and let others have its node meanwhile."""
        self._line.hold_back(ticket.key)
        self._kept_nodes.release(ticket.key)

    def let_back(self, ticket: Ticket) -> None:
        """Let a ticket be called again."""
        self._line.let_back(ticket.key)

    def serve(self, room: Room, now: float, until: float = inf) -> list[Ticket]:
        """Call, in order, everybody whose turn it is at this moment and who joined before *until*.

        If the first of a lane stays, so does the rest, which waits for the same. Then only whether
        they collect is asked, until one doesn't.
        """
        self._kept_nodes.look_anew(room)
        called: list[Ticket] = []
        heads = self._heads(now)
        while heads:
            _, key, index = heapq.heappop(heads)
            ticket = self._line.lanes[key].present[index]
            if ticket.since >= until:
                continue
            if index == 0 and self._call_if_it_fits(ticket, room, now):
                called.append(ticket)
                has_collected = self.collects_on(ticket) is not None
                self.leave(ticket)
                if has_collected:
                    heads = self._heads(now)  # it is for those ahead to collect there next
                else:
                    self._push(heads, key, 0, now)
            elif self._kept_nodes.collects(ticket, room, now):
                self._push(heads, key, index + 1, now)
        return called

    def _heads(self, now: float) -> _Heads:
        heads: _Heads = []
        for key in self._line.lanes:
            self._push(heads, key, 0, now)
        return heads

    def _push(self, heads: _Heads, key: LaneKey, index: int, now: float) -> None:
        lane = self._line.lanes.get(key)
        if lane is not None and index < len(lane.present):
            heapq.heappush(heads, (lane.present[index].precedence(now), key, index))

    def would_delay(self, ticket: Ticket, room: Room, now: float) -> bool:
        """Whether a server that isn't in line could delay somebody who is, if it started now."""
        return any(
            not self._kept_nodes.leaves_room(ticket, it, room, now) for it in room.fitting(ticket)
        )

    def collects_on(self, ticket: Ticket) -> str | None:
        """Return the node on which a ticket collects; None if it doesn't."""
        return self._kept_nodes.node(ticket.key)

    def _call_if_it_fits(self, ticket: Ticket, room: Room, now: float) -> bool:
        fitting = frozenset(room.fitting(ticket))
        allowed = frozenset(
            it for it in fitting if self._kept_nodes.leaves_room(ticket, it, room, now)
        )
        return bool(allowed) and room.promise(ticket, fitting - allowed)
