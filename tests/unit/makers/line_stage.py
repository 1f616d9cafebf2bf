"""A preflight with people who wait in line, on a view that a test changes."""

from __future__ import annotations

from typing import Any

from gpuspawner.cluster.view import ClusterView
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.line.tickets import Ticket
from gpuspawner.line.waiting_line import WaitingLine
from gpuspawner.preflight.nobody_waits import DecidesAlone
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.worlds import Plain, StillView, node, pod, proposal, settle

FULL = [("Node", node("n", 2)), ("Pod", pod("x", 1, on="n")), ("Pod", pod("y", 1, on="n"))]


class Stage:
    """A preflight on a view that a test changes, and people who wait."""

    def __init__(self, *objects: tuple[str, Any], kept: StoredPlaces | None = None) -> None:
        self.view = StillView(*objects)

        def line(
            view: ClusterView, verdicts: Verdicts, reservations: Reservations, decide: DecidesAlone
        ) -> WaitingLine:
            self.line = WaitingLine(view, verdicts, reservations, decide, kept or StoredPlaces())
            return self.line

        self.preflight = Preflight(self.view, line=line)
        self.tickets: dict[str, Ticket] = {}
        """Of those who have joined, by name."""

    def joining(
        self, name: str, gpus: int = 1, since: float | None = None, pod: Any = None, **more: Any
    ) -> Any:
        """Join the line while the context is open, last unless *since* says otherwise.

        *pod* has what the pod's spec has besides.
        """
        place = len(self.tickets) + 1.0 if since is None else since
        return self.joins(proposal(name, gpus, **(pod or {})), place, **more)

    def joins(self, wanted: Proposal, since: float, weight: float = 1.0, **more: Any) -> Any:
        """Join the line with a proposal of one's own while the context is open."""
        ticket = self.line.ticket(wanted, wanted.name, since, weight)
        assert ticket is not None
        self.tickets[wanted.name] = ticket
        return self.line.join(ticket, wanted, **more)

    async def shows(self, kind: str, plain: Plain) -> None:
        """Let the view show an object to those who wait by now."""
        await settle()
        self.view.put(kind, plain)
        await settle()

    async def ends(self, *pods: str) -> None:
        await settle()
        for it in pods:
            self.view.remove_pod(it)
        await settle()

    async def wakes(self) -> None:
        await settle()
        self.view.wake()
        await settle()
