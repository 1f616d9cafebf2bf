"""Who at the front of the line needs no place any more.

A node comes for it; or for a while no node could hold it, or nobody could tell; or deciding has
failed.
"""

import logging
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import LaneKey, Line, Precedence, Ticket
from gpuspawner.preflight.decision import (
    Decision,
    Reason,
    Refuse,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.scaling.outlook import MayScaleUp

log = logging.getLogger(__name__)

STAYS = frozenset({Reason.BUSY, Reason.AWAY, Reason.TRY_AGAIN})
"""Why somebody stays in line."""
UNSURE_SECONDS = 30.0
"""How long they stay if nobody can tell any more whether they fit.

After a restart of the API server, what a verdict needs is read again.
"""
GONE_SECONDS = 600.0
"""How long they stay though no node could ever hold them: when they joined, one could.

A node that is maintained, or that a cloud takes back, is replaced in some minutes.
"""
_SECONDS = 0.005
"""After how much processor time the others have to wait for the next time."""
_Head = tuple[int, Precedence, LaneKey]
"""The first of a lane, and in which look the lane had its last turn."""


class Fronts:
    """The first of each lane, the earliest first; if there are many, they take turns.

    Args:
        decide: Decides about a server at this moment, leaving the line aside.
        is_tried: Whether another pod like a server's shows right now whether a node comes.
        renewed: Returns a ticket in the lane in which it belongs now.
    """

    def __init__(
        self,
        line: Line,
        decide: Callable[[Key], Decision],
        is_tried: Callable[[Ticket], bool] = lambda _: False,
        renewed: Callable[[Ticket], Ticket] = lambda it: it,
    ) -> None:
        self._line = line
        self._decide = decide
        self._is_tried = is_tried
        self._renewed = renewed
        self._looks = 0
        self._turns: dict[LaneKey, int] = {}
        """In which look each lane had its last turn."""
        self._failed: dict[Key, bool] = {}
        """Those about whom deciding has failed, and whether it has gone well for others since."""
        self._unsure: dict[LaneKey, float] = {}
        """Since when nobody can tell whether the first of a lane fits."""
        self._gone: dict[LaneKey, float] = {}
        """Since when no node can hold the first of a lane."""

    def seconds_left(self, ticket: Ticket) -> float | None:
        """Return for how long a ticket stays though no node can hold it; None if one can."""
        since = self._gone.get(ticket.lane)
        return None if since is None else max(0.0, since + GONE_SECONDS - time.monotonic())

    def lose_contact(self) -> None:
        """Begin all times anew: without contact, nobody sees a node, or what a verdict needs."""
        self._unsure.clear()
        self._gone.clear()

    def done(self, until: float) -> Iterator[tuple[Ticket, Decision | None]]:
        """Yield those that need no place any more, of those who joined before a time, and why.

        Each has to leave the line, with its reservation, before the next is looked at. The decision
        is None if there is none, because of a fault of the server's own.
        """
        heads: list[_Head] = []
        now, end = time.time(), time.thread_time() + _SECONDS

        def push(key: LaneKey, turn: int) -> None:
            lane = self._line.lanes.get(key)
            if lane and lane.present and lane.present[0].since < until:
                heappush(heads, (turn, lane.present[0].precedence(now), key))

        self._look_anew()
        for key, turn in self._turns.items():
            push(key, turn)
        while heads:
            turn, _, key = heappop(heads)
            self._turns[key] = self._looks
            ticket = self._line.lanes[key].present[0]
            stays, decision = self._look(ticket)
            if not stays:
                yield ticket, decision
            if self._line.find(ticket.key) is not ticket:
                push(key, turn)  # the next may leave the lane, too
            if time.thread_time() > end:
                return

    def _look_anew(self) -> None:
        lanes = self._line.lanes
        # As if a new lane had been in the last look; else, the newest would come first.
        self._turns = {key: self._turns.get(key, self._looks) for key in lanes}
        self._looks += 1
        self._failed = {key: it for key, it in self._failed.items() if self._line.find(key)}
        # Of those who are held back, nobody knows whether a node has come back meanwhile.
        looked_at = {key for key, lane in lanes.items() if lane.present}
        for since in (self._unsure, self._gone):
            for key in since.keys() - looked_at:
                del since[key]

    def _changed_lane(self, before: Ticket) -> Ticket:
        """Return a ticket in its present lane; if it needs the same as before, its times run on."""
        ticket = self._renewed(before)
        if ticket.needs == before.needs:
            for since in (self._unsure, self._gone):
                if before.lane in since:
                    since.setdefault(ticket.lane, since[before.lane])
        return ticket

    def _look(self, ticket: Ticket) -> tuple[bool, Decision | None]:
        """Return whether a ticket stays in line, and the decision about it."""
        try:
            ticket = self._changed_lane(ticket)
            decision = self._decide(ticket.key)
        except Exception:
            log.exception("No decision about %s in line", "/".join(ticket.key))
            # If others fare well, the fault is its own: its start shows what is wrong.
            return not self._failed.setdefault(ticket.key, False), None
        self._failed.pop(ticket.key, None)
        self._failed = dict.fromkeys(self._failed, True)
        now = time.monotonic()
        for since, seconds, is_so in (
            (self._unsure, UNSURE_SECONDS, _is_unsure(decision)),
            (self._gone, GONE_SECONDS, _is_gone(decision)),
        ):
            if is_so:
                return now - since.setdefault(ticket.lane, now) < seconds, decision
            since.pop(ticket.lane, None)
        is_behind = _is_trial(decision) and self._is_tried(ticket)
        return is_behind or needs_a_place(decision), decision


def needs_a_place(decision: Decision) -> bool:
    """Whether a start stays in line by a decision about it; others are let go at once."""
    if isinstance(decision, Refuse):
        return decision.reason in STAYS
    return decision == Start(decision.grant)  # the line itself calls it


def _is_trial(decision: Decision) -> bool:
    scale_up = decision.scale_up if isinstance(decision, Wait) else None
    return isinstance(scale_up, MayScaleUp) and not (scale_up.on_its_way or scale_up.is_listed)


def _is_gone(decision: Decision) -> bool:
    return isinstance(decision, Refuse) and decision.reason is Reason.IMPOSSIBLE


def _is_unsure(decision: Decision) -> bool:
    notes = decision.notes if isinstance(decision, Start) else ()
    return any(isinstance(it, UnknownRules | ViewNotLive) for it in notes)
