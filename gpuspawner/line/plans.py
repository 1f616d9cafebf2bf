"""Which tickets hold which nodes: each one node, in the order of the line, while there are some."""

import heapq
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter

import msgspec

from gpuspawner.line.holds import Holds, in_order
from gpuspawner.line.line import LaneKey, Line, Precedence, Ticket
from gpuspawner.line.room import Room

_ARRIVAL = attrgetter("arrival")
_LOOKED_AT = 32
"""How many of the best candidates are put in order again for each ticket."""

_Heads = list[tuple[Precedence, LaneKey, int]]
"""The next ticket of each lane, by its place in the lane."""


class _Plan(msgspec.Struct):
    """How far the tickets of a lane hold nodes.

    Attributes:
        reach: The nodes that its tickets could use.
        candidates: Those of which something may be left to hold; the best is the last. None if
            nobody knows.
        releases: Up to which `Holds.releases` these are known.
        until: All tickets ahead of this one hold a node; None if that isn't known of any.
    """

    reach: frozenset[str]
    candidates: list[str] | None = None
    releases: int = 0
    until: Ticket | None = None


class Plans:
    """Lets tickets hold nodes. Each lane continues at the ticket where it stopped."""

    def __init__(self, line: Line, holds: Holds) -> None:
        self._line = line
        self._holds = holds
        self._plans: dict[LaneKey, _Plan] = {}

    def go_back_to(self, ticket: Ticket) -> None:
        """Note that a ticket, which may be ahead of others that hold nodes, holds none."""
        plan = self._plans.get(ticket.lane)
        if plan is not None and plan.until and ticket.arrival <= plan.until.arrival:
            plan.until = ticket
            plan.candidates = None  # what is full for those behind may not be for this one

    def let_hold(self, lanes: Iterable[LaneKey], place: Precedence, room: Room, now: float) -> None:
        """Let the tickets of these lanes that are ahead of a place hold nodes, the first one first.

        If one gets none, each node that it could use is held by others as far as it could use it.
        So nobody behind gets anything there before these do.
        """
        keys = list(lanes)
        may_go_on = [self._may_go_on(self._plan(key, room), key, place, now) for key in keys]
        heads: _Heads = []
        for key in keys if any(may_go_on) else ():
            self._push(heads, key, self._index(key), place, now)
        while heads:
            _, key, index = heapq.heappop(heads)
            plan, ticket = self._plans[key], self._line.lanes[key].present[index]
            if ticket is not plan.until:
                continue  # its lane has gone back since
            behind = self._hold_one(ticket, plan, room, now)
            if behind is None:
                continue
            self._push(heads, key, index + 1, place, now)
            for it in behind:
                self.go_back_to(it)
                self._push(heads, it.lane, self._index(it.lane), place, now)

    def forget_lanes(self) -> None:
        """Forget the lanes that nobody is in any more."""
        for key in self._plans.keys() - self._line.lanes.keys():
            del self._plans[key]

    def _index(self, key: LaneKey) -> int:
        until = self._plans[key].until
        present = self._line.lanes[key].present
        return 0 if until is None else bisect_left(present, until.arrival, key=_ARRIVAL)

    def _push(self, heads: _Heads, key: LaneKey, index: int, place: Precedence, now: float) -> None:
        present = self._line.lanes[key].present
        if index < len(present):
            ticket = present[index]
            self._plans[key].until = ticket
            if ticket.precedence(now) < place:
                heapq.heappush(heads, (ticket.precedence(now), key, index))

    def _may_go_on(self, plan: _Plan, key: LaneKey, place: Precedence, now: float) -> bool:
        """Whether a ticket of a lane may get a node that had none, if no other lane goes on."""
        if plan.until is None:
            return True
        if plan.until.precedence(now) >= place:
            return False
        if self._holds.node(plan.until.key) is not None:
            return plan.until is not self._line.lanes[key].present[-1]
        return plan.candidates != [] or plan.releases != self._holds.releases

    def _plan(self, key: LaneKey, room: Room) -> _Plan:
        """Return a lane's plan: anew, and without its nodes, if it could use other ones now."""
        reach = room.possible(self._line.lanes[key].present[0])
        plan = self._plans.get(key)
        if plan is not None and plan.reach is not reach and plan.reach != reach:
            self._holds.release_on(plan.reach - reach, key)
            plan = None
        if plan is None:
            plan = self._plans[key] = _Plan(reach)
        plan.reach = reach  # the same object, if possible: comparing sets takes time
        return plan

    def _hold_one(self, ticket: Ticket, plan: _Plan, room: Room, now: float) -> list[Ticket] | None:
        """Let a ticket hold a node, unless it does; return those behind that don't any more.

        None means that there is no node for it.
        """
        if self._holds.node(ticket.key) is not None:
            return []
        return self._holds.hold(ticket, self._candidates(ticket, plan, room), room, now)

    def _candidates(self, ticket: Ticket, plan: _Plan, room: Room) -> list[str]:
        found, known = plan.candidates, plan.releases
        plan.releases = self._holds.releases
        if found is None:
            found = plan.candidates = in_order(ticket, plan.reach, room)
        elif known != plan.releases:
            found += [it for it in self._holds.released_since(known) if it in plan.reach]
            if len(found) > 2 * len(plan.reach):  # most of them more than once
                found[:] = in_order(ticket, set(found), room)
        # Nodes fill and empty meanwhile. With more candidates than these, the order is older.
        found[-_LOOKED_AT:] = in_order(ticket, set(found[-_LOOKED_AT:]), room)
        return found
