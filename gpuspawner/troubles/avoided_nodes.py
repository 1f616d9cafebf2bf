"""The nodes whose GPUs have failed somebody's server, so that the next one goes elsewhere."""

import time
from collections.abc import Callable

from gpuspawner.kube.caches import Recent
from gpuspawner.troubles.trouble import Kind

SECONDS = 1800.0
"""How long a node is avoided."""

_MOST_OWNERS = 1000
_MOST_NODES = 8

BROKEN = frozenset(
    {Kind.GPUS_MISSING, Kind.GPU_DRIVER, Kind.DEVICE_BROKEN, Kind.DEVICES_UNPREPARED}
)
"""What goes wrong with a node's GPUs, and would again."""


class AvoidedNodes:
    """Who avoids which nodes, in this process; a restart of the hub forgets it.

    The oldest are forgotten first if there are too many.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = Recent[str, Recent[str, float]](_MOST_OWNERS)

    def avoid(self, owner: str, node: str) -> None:
        """Let an owner's next servers avoid a node."""
        nodes = self._until.get(owner) or Recent(_MOST_NODES)
        nodes[node] = self._clock() + SECONDS
        self._until[owner] = nodes

    def of(self, owner: str) -> tuple[str, ...]:
        """Return the nodes that an owner's servers avoid at this moment."""
        now = self._clock()
        return tuple(it for it, until in (self._until.get(owner) or {}).items() if until > now)
