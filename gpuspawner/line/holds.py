"""Nodes that are kept free for servers at the front of the line.

A server that needs four GPUs would never get them if each GPU that becomes free went to somebody
who needs only one. So each server in line has one node on which it collects what becomes free, for
as long as there are nodes. Servers behind it get only what is left there.
"""

from collections.abc import Iterable
from itertools import takewhile
from math import inf

from gpuspawner.kube.meta import Key
from gpuspawner.line.line import LaneKey, Ticket
from gpuspawner.line.room import Room
from gpuspawner.scheduling.requests import Amounts

MARGIN_SECONDS = 120.0
"""What a pod may take beyond its lifetime: to start before it counts, and to end."""


class Holds:
    """At most one node for each ticket. A node is kept until the ticket is gone, or can't use it.

    Attributes:
        releases: How many holds have ended.
    """

    def __init__(self) -> None:
        self.releases = 0
        self._released: dict[str, int] = {}
        self._nodes: dict[Key, str] = {}
        self._tickets: dict[str, dict[Key, Ticket]] = {}

    def node(self, key: Key) -> str | None:
        """Return the node that a ticket holds; None if it holds none."""
        return self._nodes.get(key)

    def release(self, key: Key) -> None:
        """End a ticket's hold, if it has one."""
        node = self._nodes.pop(key, None)
        if node is not None:
            self.releases += 1
            self._released.pop(node, None)  # so that the last is at the end
            self._released[node] = self.releases
            del self._tickets[node][key]
            if not self._tickets[node]:
                del self._tickets[node]

    def released_since(self, releases: int) -> list[str]:
        """Return the nodes of which a hold has ended since there were so many *releases*."""
        last_first = reversed(self._released.items())
        return [node for node, _ in takewhile(lambda it: it[1] > releases, last_first)]

    def hold(
        self, ticket: Ticket, candidates: list[str], room: Room, now: float
    ) -> list[Ticket] | None:
        """Let a ticket hold the last candidate; drop those that are full of holds ahead of it.

        Returns:
            Those behind it that don't hold that node any more, because too little is left of it for
            them; None if there was no candidate.
        """
        while candidates:
            node = candidates[-1]
            if _covers(room.size(node), (*self._ahead_of(ticket, node, now), ticket.requests)):
                self._nodes[ticket.key] = node
                self._tickets.setdefault(node, {})[ticket.key] = ticket
                return self._crowd_out(node, room, now)
            candidates.pop()
        return None

    def _crowd_out(self, node: str, room: Room, now: float) -> list[Ticket]:
        """Release a node for those holders that it is too small for, beside those ahead of them."""
        kept: list[Amounts] = []
        out: list[Ticket] = []
        for it in sorted(self._tickets[node].values(), key=lambda it: it.precedence(now)):
            if _covers(room.size(node), (*kept, it.requests)):
                kept.append(it.requests)
            else:
                out.append(it)
        for it in out:
            self.release(it.key)
        return out

    def release_on(self, nodes: Iterable[str], lane: LaneKey) -> None:
        """End the holds of a lane's tickets on some nodes."""
        for node in nodes:
            for it in list(self._tickets.get(node, {}).values()):
                if it.lane == lane:
                    self.release(it.key)

    def leaves_room(self, ticket: Ticket, node: str, room: Room, now: float) -> bool:
        """Whether a server can start on a node without delaying any ahead that holds it.

        Either it takes only what they don't need, or it surely ends before the first of them has
        all that it needs by the known ends of other servers.
        """
        ahead = self._ahead_of(ticket, node, now)
        if not ahead or _leaves(room.unpromised(node), ahead, ticket.requests):
            return True
        if ticket.lifetime is None:
            return False
        start = min(_start(node, it, room) for it in ahead)
        return start < inf and ticket.lifetime + MARGIN_SECONDS <= start

    def _ahead_of(self, ticket: Ticket, node: str, now: float) -> list[Amounts]:
        place, holders = ticket.precedence(now), self._tickets.get(node, {})
        return [it.requests for it in holders.values() if it.precedence(now) < place]


def in_order(ticket: Ticket, nodes: Iterable[str], room: Room) -> list[str]:
    """Return nodes in the order in which to hold them for such tickets; the best is the last.

    That is the one on which they can start first by known ends, or most of what they need is free.
    """
    needed = ticket.requests

    def distance(node: str) -> tuple[float, float, str]:
        return _start(node, needed, room), -_part(room.free(node), needed), node

    return sorted(nodes, key=distance, reverse=True)


def _start(node: str, needed: Amounts, room: Room) -> float:
    """Return in how many seconds a node has all this by known ends; infinity if never."""
    free = room.free(node)
    if _has(free, needed):
        return 0.0
    left = dict(free)
    for end in room.ends(node):
        for resource, amount in end.amounts.items():
            left[resource] = left.get(resource, 0) + amount
        if _has(left, needed):
            return end.seconds
    return inf


def _covers(free: Amounts, needed: Iterable[Amounts]) -> bool:
    total: dict[str, int] = {}
    for amounts in needed:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    return _has(free, total)


def _has(free: Amounts, needed: Amounts) -> bool:
    """Whether there is enough; who needs nothing of a resource also fits where less is left."""
    for resource, amount in needed.items():
        if amount and amount > free.get(resource, 0):
            return False
    return True


def _leaves(free: Amounts, ahead: Iterable[Amounts], taken: Amounts) -> bool:
    """Whether enough is left of what is taken; what isn't taken doesn't matter."""
    needed = [{resource: it.get(resource, 0) for resource in taken} for it in ahead]
    return _covers(free, (*needed, taken))


def _part(free: Amounts, needed: Amounts) -> float:
    """Return which part of what is needed is free, of the resource of which least is."""
    part = inf
    for resource, amount in needed.items():
        left = free.get(resource, 0)
        if amount and left < part * amount:
            part = left / amount
    return part
