"""What those who wait can expect: how long it takes, and how many servers are idle."""

import time
from collections.abc import Iterable
from heapq import nlargest

import msgspec

from gpuspawner.line.durations import Durations
from gpuspawner.line.estimate import Forecast, Range
from gpuspawner.line.line import Ticket
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import is_device
from gpuspawner.scheduling.state import ClusterState

_SURE_SECONDS = 30.0
"""For how long a forecast is used again."""
_ASKED = 20
"""On how many nodes a server with several devices is looked for: each costs about 1 ms."""


class _Prospect(msgspec.Struct, frozen=True):
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
        self._ranges: dict[tuple[frozenset[str], str, int], tuple[float, Range | None]] = {}

    def usual(
        self, ticket: Ticket, possible: frozenset[str], ahead: Iterable[tuple[Ticket, int]]
    ) -> Range | None:
        """Return how long it usually takes; None if nobody can tell.

        Servers with several devices need them on one node, so only the first in line can be told.
        Behind one nobody can: it collects devices on its node, while others take those elsewhere.

        Args:
            ticket: Whose wait it is.
            possible: The nodes on which the server would fit if others ended.
            ahead: One of each kind of tickets that are ahead, and how many of it are.
        """
        device = _device(ticket)
        if device is None:
            return None
        others = [(it.requests.get(device, 0), count) for it, count in ahead if count]
        needed = ticket.requests[device]
        if needed > 1:
            return None if others else self._on_one_node(possible, device, needed)
        if any(amount > 1 for amount, _ in others):
            return None
        needed += sum(amount * count for amount, count in others)
        return self._prospect(possible, device).forecast.until_free(needed)

    def _on_one_node(self, possible: frozenset[str], device: str, needed: int) -> Range | None:
        """Return how long it takes until a node has so many, on that which has them first."""
        now = time.monotonic()
        self._ranges = {key: it for key, it in self._ranges.items() if now - it[0] <= _SURE_SECONDS}
        key = possible, device, needed
        if key not in self._ranges:
            self._ranges[key] = now, self._least(possible, device, needed)
        return self._ranges[key][1]

    def _least(self, possible: frozenset[str], device: str, needed: int) -> Range | None:
        def free(node: NodeInfo) -> int:
            return node.free.get(device, 0)

        survival = self._durations.survival(device)
        ranges = []
        for node in nlargest(_ASKED, self._nodes(possible), key=free):
            forecast = Forecast(self._durations.occupants([node], device), survival)
            found = forecast.until_free(max(1, needed - free(node)))
            if found is not None:
                ranges.append(found)
        return min(ranges, key=lambda it: (it.high, it.low), default=None)

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
    """Return the first device that a ticket's pod requests; None if it has none."""
    return next((it for it, amount in ticket.requests.items() if amount and is_device(it)), None)
