"""A preflight with people who wait in line, on a view that a test changes."""

from __future__ import annotations

from typing import Any

from gpuspawner.preflight.preflight import Preflight
from gpuspawner.queue.kept import KeptPlaces
from gpuspawner.queue.ticket import Ticket
from tests.unit.preflight.worlds import StillView, node, pod, proposal

FULL = [("Node", node("n", 2)), ("Pod", pod("x", 1, on="n")), ("Pod", pod("y", 1, on="n"))]


class Stage:
    """A preflight on a view that a test changes, and people who wait."""

    def __init__(self, *objects: tuple[str, Any], kept: KeptPlaces | None = None) -> None:
        self.view = StillView(*objects)
        self.preflight = Preflight(self.view, patience=0.05, kept=kept)
        self.line = self.preflight.line

    def joining(
        self, name: str, gpus: int = 1, since: float = 1.0, pod: Any = None, **more: Any
    ) -> Any:
        """Join the line while the context is open; *pod* has what the pod's spec has besides."""
        wanted = proposal(name, gpus, **(pod or {}))
        ticket = self.line.ticket(wanted, name, since)
        assert ticket is not None
        return self.line.join(ticket, wanted, **more)

    def ticket(self, name: str, gpus: int = 1, since: float = 1.0) -> Ticket:
        found = self.line.ticket(proposal(name, gpus), name, since)
        assert found is not None
        return found
