"""Who at the front of the line needs no place any more: a node comes for it, or none ever will."""

import logging
import time
from collections.abc import Callable, Iterator

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.queue.line import Line
from gpuspawner.queue.ticket import Key, Ticket

log = logging.getLogger(__name__)

STAYS = frozenset({Reason.BUSY, Reason.AWAY, Reason.TRY_AGAIN})
"""Why somebody stays in line."""
_SECONDS = 0.005
"""After how much processor time the others have to wait for the next time."""


class Fronts:
    """The first of each lane; if there are many, they take turns.

    Args:
        decide: Decides about a server at this moment, leaving the line aside.
    """

    def __init__(self, line: Line, decide: Callable[[Key], Decision]) -> None:
        self._line = line
        self._decide = decide
        self._turn = 0

    def done(self, until: float) -> list[Ticket]:
        """Return those that need no place any more, of those who joined before a time."""
        return [ticket for ticket in self._next(until) if not self._needs_its_place(ticket)]

    def _next(self, until: float) -> Iterator[Ticket]:
        fronts = [lane.present[0] for lane in self._line.lanes.values() if lane.present]
        known = [ticket for ticket in fronts if ticket.since < until]
        end = time.thread_time() + _SECONDS
        for _ in known:
            self._turn += 1
            yield known[self._turn % len(known)]
            if time.thread_time() > end:
                return

    def _needs_its_place(self, ticket: Ticket) -> bool:
        try:
            decision = self._decide(ticket.key)
        except Exception:  # its own start shows what is wrong, and the others go on
            log.exception("No decision about %s in line", "/".join(ticket.key))
            return False
        if isinstance(decision, Refuse):
            return decision.reason in STAYS
        return decision == Start(decision.grant)  # the line itself calls it
