"""What those who wait can expect: how long it takes, and how many servers are idle."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from gpuspawner.preflight.durations import Durations
from gpuspawner.queue.estimate import Forecast, Range
from gpuspawner.queue.ticket import Ticket
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState

_SURE_SECONDS = 30.0
"""For how long a forecast is used again."""


@dataclass(frozen=True, slots=True)
class _Prospect:
    """What is known of the servers on some nodes that have a device."""

    made: float
    forecast: Forecast
    idle: int


class Prospects:
    """Keeps a forecast for each set of nodes that somebody waits for: many wait for the same."""

    def __init__(self, state: ClusterState, durations: Durations) -> None:
        self._state = state
        self._durations = durations
        self._kept: dict[tuple[frozenset[str], str], _Prospect] = {}

    def usual(
        self, ticket: Ticket, possible: frozenset[str], ahead: Iterable[tuple[Ticket, int]]
    ) -> Range | None:
        """Return how long it usually takes; None if nobody can tell.

        Servers with several devices need them on one node, so only the first in line can be told.

        Args:
            ticket: Whose wait it is.
            possible: The nodes on which the server would fit if others ended.
            ahead: One of each kind of tickets that are ahead, and how many of it are.
        """
        device = _device(ticket)
        if device is None:
            return None
        needed = ticket.requests[device]
        if needed == 1:
            needed += sum(it.requests.get(device, 0) * count for it, count in ahead)
            return self._prospect(possible, device).forecast.until_free(needed)
        if any(count for _, count in ahead):
            return None
        best = max(self._nodes(possible), key=lambda it: it.free.get(device, 0), default=None)
        if best is None:
            return None
        occupants = self._durations.occupants([best], device)
        forecast = Forecast(occupants, self._durations.survival(device))
        return forecast.until_free(max(1, needed - best.free.get(device, 0)))

    def idle(self, ticket: Ticket, possible: frozenset[str]) -> int:
        """Return how many servers have what a ticket waits for, and haven't been used for long."""
        device = _device(ticket)
        return 0 if device is None else self._prospect(possible, device).idle

    def _prospect(self, possible: frozenset[str], device: str) -> _Prospect:
        now = time.monotonic()
        kept = self._kept.get((possible, device))
        if kept is None or now - kept.made > _SURE_SECONDS:
            self._kept = {
                key: it for key, it in self._kept.items() if now - it.made <= _SURE_SECONDS
            }
            nodes = self._nodes(possible)
            occupants = self._durations.occupants(nodes, device)
            forecast = Forecast(occupants, self._durations.survival(device))
            idle = self._durations.idle(nodes, device)
            kept = self._kept[possible, device] = _Prospect(now, forecast, idle)
        return kept

    def _nodes(self, names: Iterable[str]) -> list[NodeInfo]:
        known = self._state.nodes
        return [known[it] for it in names if it in known]


def _device(ticket: Ticket) -> str | None:
    """Return the first extended resource that a ticket's pod requests; None if it has none."""
    return next((it for it in ticket.requests if "/" in it), None)
