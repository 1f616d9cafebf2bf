"""Who is next: the first in line for whom there is room, unless that delays somebody ahead."""

import heapq
from math import inf

from gpuspawner.line.holds import Holds
from gpuspawner.line.line import LaneKey, Line, Ticket
from gpuspawner.line.plans import Plans
from gpuspawner.line.room import Room

_ORDER_SECONDS = 60.0
"""How often those with other weights pass each other."""


class Serving:
    """Calls tickets, and keeps nodes for those that stay.

    Args:
        line: A ticket that is called leaves it. Only this changes it.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._hold_anew()
        self._moment = 0.0

    def _hold_anew(self) -> None:
        self._holds = Holds()
        self._plans = Plans(self._line, self._holds)

    def join(self, ticket: Ticket) -> None:
        """Add a ticket; it replaces one of the same server, which holds nothing any more."""
        self._holds.release(ticket.key)
        self._line.join(ticket)
        self._plans.go_back_to(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket, and what is kept for it."""
        self._line.leave(ticket.key)
        self._holds.release(ticket.key)

    def step_aside(self, ticket: Ticket) -> None:
        """Note that a ticket's owner is away: others may have its node meanwhile."""
        self._line.step_aside(ticket.key)
        self._holds.release(ticket.key)

    def step_back(self, ticket: Ticket) -> None:
        """Note that a ticket's owner is here again."""
        self._line.step_back(ticket.key)
        self._plans.go_back_to(ticket)

    def serve(self, room: Room, now: float, until: float = inf) -> list[Ticket]:
        """Call everybody whose turn it is at this moment, in order; only who joined before *until*.

        Each lane is looked at once, and again after each ticket of it that was called. If the first
        of a lane stays, so does the rest, which waits for the same.
        """
        now = self._in_order(now)
        called: list[Ticket] = []
        passed: list[LaneKey] = []
        heads = [
            (lane.present[0].precedence(now), key)
            for key, lane in self._line.lanes.items()
            if lane.present and lane.present[0].since < until
        ]
        heapq.heapify(heads)
        while heads:
            _, key = heapq.heappop(heads)
            lane = self._line.lanes[key]
            ticket = lane.present[0]
            if self._is_called(ticket, passed, room, now):
                self.leave(ticket)
                called.append(ticket)
                if lane.present and lane.present[0].since < until:
                    heapq.heappush(heads, (lane.present[0].precedence(now), key))
            else:
                passed.append(key)
        self._plans.forget_lanes()
        return called

    def would_delay(self, ticket: Ticket, room: Room, now: float) -> bool:
        """Whether a server that isn't in line could delay somebody who is, if it started now."""
        now = self._in_order(now)
        ahead = [key for key, lane in self._line.lanes.items() if lane.present]
        fitting = frozenset(room.fitting(ticket))
        return self._without_delay(ticket, fitting, ahead, room, now) != fitting

    def moment(self, now: float) -> float:
        """Return the time for which the order counts at this moment.

        With one weight, time changes no order. With several, it would at any moment, so it is kept
        for a minute.
        """
        weights = {key.weight for key in self._line.lanes}
        return now if len(weights) <= 1 else now // _ORDER_SECONDS * _ORDER_SECONDS

    def _in_order(self, now: float) -> float:
        """Return `moment`; if it is another one with other places, all nodes are held anew."""
        moment = self.moment(now)
        if moment != now and moment != self._moment:
            self._moment = moment
            self._hold_anew()
        return moment

    def _is_called(self, ticket: Ticket, passed: list[LaneKey], room: Room, now: float) -> bool:
        fitting = frozenset(room.fitting(ticket))
        if not fitting:
            return False
        allowed = self._without_delay(ticket, fitting, passed, room, now)
        return bool(allowed) and room.promise(ticket, fitting - allowed)

    def _without_delay(
        self, ticket: Ticket, fitting: frozenset[str], ahead: list[LaneKey], room: Room, now: float
    ) -> frozenset[str]:
        """Return those of the nodes on which a server would delay nobody of these lanes."""
        self._plans.let_hold(ahead, ticket.precedence(now), room, now)
        return frozenset(it for it in fitting if self._holds.leaves_room(ticket, it, room, now))
