"""When the hub's servers end, and which are idle: for the line.

All of it comes from the pods of the hub's namespace. Other pods take room too, but nobody knows
when they end.
"""

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from gpuspawner.kube.meta import Key
from gpuspawner.kube.servers import ServerPod
from gpuspawner.line.tickets import KnownEnd, Ticket
from gpuspawner.scheduling.node_info import NodeInfo

_SURE_SECONDS = 30.0
"""For how long a number of idle servers is used again: many wait for the same."""


class KnownEnds:
    """What is known of servers in time.

    Args:
        pods: Returns the pods of servers, by namespace and name.
        unused: Returns the keys of those that nobody has used for long.
    """

    def __init__(
        self,
        pods: Callable[[], Mapping[Key, ServerPod]],
        unused: Callable[[], Collection[Key]] = frozenset,
    ) -> None:
        self._pods = pods
        self._unused = unused
        self._idle: dict[tuple[frozenset[str], str], tuple[float, int]] = {}

    def ends(self, node: NodeInfo) -> list[KnownEnd]:
        """Return the known ends of the pods on a node, the first one first."""
        now, pods = datetime.now(UTC), self._pods()
        found = []
        for info in node.pods.values():
            ends_at = pod.ends_at if (pod := pods.get((info.namespace, info.name))) else None
            if ends_at is not None:
                left = max(0.0, (ends_at - now).total_seconds()) + info.grace
                found.append(KnownEnd(left, info.requested))
        return sorted(found, key=lambda it: it.seconds)

    def idle(self, ticket: Ticket, possible: frozenset[str], nodes: Mapping[str, NodeInfo]) -> int:
        """Return how many servers have what a ticket waits for, and haven't been used for long.

        Args:
            ticket: Only servers that have some of its device count; none if it needs no device.
            possible: The names of the nodes on which they count.
            nodes: All nodes.
        """
        device = ticket.device
        if device is None:
            return 0
        now = time.monotonic()
        self._idle = {key: it for key, it in self._idle.items() if now - it[0] <= _SURE_SECONDS}
        key = possible, device
        if key not in self._idle:
            there = [nodes[it] for it in possible & nodes.keys()]
            self._idle[key] = now, self._count_idle(there, device)
        return self._idle[key][1]

    def _count_idle(self, nodes: Collection[NodeInfo], device: str) -> int:
        unused = self._unused()
        pods = (it for node in nodes for it in node.pods.values()) if unused else ()
        return sum(
            1 for it in pods if (it.namespace, it.name) in unused and it.requested.get(device)
        )
