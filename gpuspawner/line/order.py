"""Who is next: the earliest, and others whenever it doesn't fit, but not on a node it collects on.

The earliest is the one who has waited longest, by weight.
"""

import heapq
from math import inf

from gpuspawner.line.kept_nodes import PART, KeptNodes
from gpuspawner.line.tickets import LaneKey, Line, Precedence, Room, Ticket

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
