"""Who at the front of the line needs no place any more: a node comes for it, or none ever will."""

import logging
import time
from collections.abc import Callable, Iterator

from gpuspawner.kube.meta import Key
from gpuspawner.line.line import LaneKey, Line, Ticket
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
_SECONDS = 0.005
"""After how much processor time the others have to wait for the next time."""


class Fronts:
    """The first of each lane; if there are many, they take turns.

    Args:
        decide: Decides about a server at this moment, leaving the line aside.
        is_tried: Whether another pod like a server's shows right now whether a node comes.
    """

    def __init__(
        self,
        line: Line,
        decide: Callable[[Key], Decision],
        is_tried: Callable[[Ticket], bool] = lambda _: False,
    ) -> None:
        self._line = line
        self._decide = decide
        self._is_tried = is_tried
        self._turn = 0
        self._turns: dict[LaneKey, int] = {}
        """When each lane had its last turn."""
        self._failed: dict[Key, bool] = {}
        """Those about whom deciding has failed, and whether it has gone well for others since."""
        self._unsure: dict[LaneKey, float] = {}
        """Since when nobody can tell whether the first of a lane fits."""

    def done(self, until: float) -> list[tuple[Ticket, Decision | None]]:
        """Return those that need no place any more, of those who joined before a time, and why.

        The decision is None if there is none, because of a fault of the server's own.
        """
        looked = [(ticket, *self._look(ticket)) for ticket in self._next(until)]
        return [(ticket, decision) for ticket, stays, decision in looked if not stays]

    def _next(self, until: float) -> Iterator[Ticket]:
        lanes = self._line.lanes
        self._turns = {key: turn for key, turn in self._turns.items() if key in lanes}
        self._failed = {key: it for key, it in self._failed.items() if self._line.find(key)}
        self._unsure = {key: since for key, since in self._unsure.items() if key in lanes}
        fronts = [(key, lane.present[0]) for key, lane in lanes.items() if lane.present]
        end = time.thread_time() + _SECONDS
        for key, ticket in sorted(fronts, key=lambda it: self._turns.get(it[0], 0)):
            if ticket.since < until:
                self._turn += 1
                self._turns[key] = self._turn
                yield ticket
                if time.thread_time() > end:
                    return

    def _look(self, ticket: Ticket) -> tuple[bool, Decision | None]:
        """Return whether a ticket stays in line, and the decision about it."""
        try:
            decision = self._decide(ticket.key)
        except Exception:
            log.exception("No decision about %s in line", "/".join(ticket.key))
            # If others fare well, the fault is its own: its start shows what is wrong.
            return not self._failed.setdefault(ticket.key, False), None
        self._failed = dict.fromkeys(self._failed, True)
        if _is_unsure(decision):
            since = self._unsure.setdefault(ticket.lane, time.monotonic())
            return time.monotonic() - since < UNSURE_SECONDS, decision
        self._unsure.pop(ticket.lane, None)
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


def _is_unsure(decision: Decision) -> bool:
    notes = decision.notes if isinstance(decision, Start) else ()
    return any(isinstance(it, UnknownRules | ViewNotLive) for it in notes)
