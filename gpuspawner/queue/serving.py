"""Who is next: the first in line for whom there is room, unless that delays somebody ahead."""

import heapq
from bisect import bisect_left
from dataclasses import dataclass
from math import inf
from operator import attrgetter

from gpuspawner.queue.holds import Holds
from gpuspawner.queue.line import Line
from gpuspawner.queue.room import Room
from gpuspawner.queue.ticket import LaneKey, Precedence, Ticket

_ARRIVAL = attrgetter("arrival")
_ORDER_SECONDS = 60.0
"""How often those with other weights pass each other."""


@dataclass
class _Plan:
    """Which tickets of a lane hold nodes.

    Attributes:
        reach: The nodes that its tickets could use.
        candidates: Those of which something may be left to hold; the best is the last.
        releases: Up to which `Holds.releases` these are known.
        until: All tickets ahead of this one hold a node; None if that isn't known of any.
    """

    reach: frozenset[str]
    candidates: list[str]
    releases: int
    until: Ticket | None = None


class Serving:
    """Calls tickets, and keeps nodes for those that stay.

    Args:
        line: A ticket that is called leaves it. Only this changes it.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._holds = Holds()
        self._plans: dict[LaneKey, _Plan] = {}
        self._moment = 0.0

    def join(self, ticket: Ticket) -> None:
        """Add a ticket."""
        self._line.join(ticket)
        self._plan_anew(ticket)

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
        self._plan_anew(ticket)

    def _plan_anew(self, ticket: Ticket) -> None:
        """Let a ticket hold a node that came in among those who do, as if all came anew."""
        plan = self._plans.get(ticket.lane)
        if plan is not None and plan.until and ticket.arrival < plan.until.arrival:
            del self._plans[ticket.lane]

    def serve(self, room: Room, now: float, until: float = inf) -> list[Ticket]:
        """Call everybody whose turn it is at this moment, in order; only who joined before *until*.

        Each lane is looked at once, and again after each ticket of it that was called. If the first
        of a lane stays, so does the rest, which waits for the same.
        """
        now = self._in_order(now)
        called: list[Ticket] = []
        passed: list[tuple[LaneKey, Ticket]] = []
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
                passed.append((key, ticket))
        self._forget_lanes()
        return called

    def would_delay(self, ticket: Ticket, room: Room, now: float) -> bool:
        """Whether a server that isn't in line could delay somebody who is, if it started now."""
        now = self._in_order(now)
        ahead = [(key, lane.present[0]) for key, lane in self._line.lanes.items() if lane.present]
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
            self._moment, self._holds = moment, Holds()
            self._plans.clear()
        return moment

    def _is_called(
        self, ticket: Ticket, passed: list[tuple[LaneKey, Ticket]], room: Room, now: float
    ) -> bool:
        fitting = frozenset(room.fitting(ticket))
        if not fitting:
            return False
        allowed = self._without_delay(ticket, fitting, passed, room, now)
        return bool(allowed) and room.promise(ticket, fitting - allowed)

    def _without_delay(
        self,
        ticket: Ticket,
        fitting: frozenset[str],
        ahead: list[tuple[LaneKey, Ticket]],
        room: Room,
        now: float,
    ) -> frozenset[str]:
        """Return those of the nodes on which a server would delay nobody of these lanes."""
        place = ticket.precedence(now)
        for key, first in ahead:
            reach = room.possible(first)
            if not reach.isdisjoint(fitting):
                self._let_hold(key, reach, place, room, now)
        return frozenset(it for it in fitting if self._holds.leaves_room(ticket, it, room, now))

    def _let_hold(
        self, key: LaneKey, reach: frozenset[str], place: Precedence, room: Room, now: float
    ) -> None:
        """Let the tickets of a lane that are ahead of a place hold nodes, while there are some.

        If one gets none, each node that it could use is held by others as far as it could use it.
        So nobody behind gets anything there before these do.
        """
        lane, plan, first = self._line.lanes[key], self._plan(key, reach, room), 0
        if plan.until is not None:
            if plan.until.precedence(now) >= place:
                return
            first = bisect_left(lane.present, plan.until.arrival, key=_ARRIVAL)
        for index in range(first, len(lane.present)):
            ticket = plan.until = lane.present[index]
            is_ahead = ticket.precedence(now) < place
            if not is_ahead or not self._holds_one(ticket, plan, room, now):
                return

    def _plan(self, key: LaneKey, reach: frozenset[str], room: Room) -> _Plan:
        plan = self._plans.get(key)
        if plan is None or (plan.reach is not reach and plan.reach != reach):
            first = self._line.lanes[key].present[0]
            candidates = self._holds.candidates(first, reach, room)
            plan = self._plans[key] = _Plan(reach, candidates, self._holds.releases)
        elif plan.releases != self._holds.releases:
            released = self._holds.released_since(plan.releases)
            plan.candidates += [it for it in released if it in reach]
            plan.releases = self._holds.releases
            if len(plan.candidates) > 2 * len(reach):  # most of them more than once
                last_first = dict.fromkeys(reversed(plan.candidates))
                plan.candidates = list(last_first)[::-1]
        return plan

    def _holds_one(self, ticket: Ticket, plan: _Plan, room: Room, now: float) -> bool:
        """Let a ticket hold a node that it can use, unless it does; return whether it does then."""
        node = self._holds.node(ticket.key)
        if node is not None and node in plan.reach:
            return True
        self._holds.release(ticket.key)
        return self._holds.hold(ticket, plan.candidates, room, now)

    def _forget_lanes(self) -> None:
        for key in self._plans.keys() - self._line.lanes.keys():
            del self._plans[key]
