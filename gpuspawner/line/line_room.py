"""What the line asks about nodes, answered by verdicts and reservations, and by servers' pods.

When servers end, and which are idle, is known of the pods of the hub's namespace. Other pods take
room too, but nobody knows when they end.
"""

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Key
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.servers import ServerPod
from gpuspawner.line.tickets import KnownEnd, Ticket
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.could_hold import reach
from gpuspawner.scheduling.node_info import pod_key
from gpuspawner.scheduling.node_resources_fit import fits, wanted
from gpuspawner.scheduling.requests import Amounts
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts

_NOWHERE: frozenset[str] = frozenset()
_KEPT = 10_000
"""For how many tickets, and kinds of pods, the nodes are kept that they could use."""
_SURE_SECONDS = 30.0
"""For how long a number of idle servers is used again: many wait for the same."""


class LineRoom:
    """The nodes of the cluster, as the line sees them at one moment.

    Args:
        reserve: As `Room.promise`, and calls the ticket.
        pods: Returns the pods of servers, by namespace and name.
        unused: Returns the keys of those that nobody has used for long.
    """

    def __init__(
        self,
        state: ClusterState,
        verdicts: Verdicts,
        reservations: Reservations,
        reserve: Callable[[Ticket, frozenset[str]], bool],
        pods: Callable[[], Mapping[Key, ServerPod]] = dict,
        unused: Callable[[], Collection[Key]] = frozenset,
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._reservations = reservations
        self.promise = reserve
        self._pods = pods
        self._unused = unused
        self._idle: dict[tuple[frozenset[str], str], tuple[float, int]] = {}
        self._possible = UntilChanged[tuple[Subject, frozenset[str], frozenset[str]]](_KEPT)
        self._claims_in_use = UntilChanged[frozenset[str]]()
        self._reaches = UntilChanged[frozenset[str]](_KEPT)
        self._alike = UntilChanged[frozenset[str]]()

    def fitting(self, ticket: Ticket) -> Collection[str]:
        """As `Room.fitting`; none if the promise wouldn't be certain."""
        if not self._have_enough(ticket):
            return _NOWHERE
        nodes = self._verdicts.nodes(ticket.subject)
        return nodes if nodes and not self.is_promised(ticket) else _NOWHERE

    def _have_enough(self, ticket: Ticket) -> bool:
        """Whether any node has enough left; verdicts cost a hundred times as much."""
        asked, nodes = wanted(ticket.requests), self._state.nodes
        spare = self._state.spare.for_pod(asked)
        if spare is None:
            return True
        return any(fits(asked, nodes[name].free) for name in spare if name in nodes)

    def is_promised(self, ticket: Ticket) -> bool:
        """Whether all room for a server is promised to others."""
        demand = self._verdicts.demand(ticket.subject)
        return demand is not None and not self._reservations.has_room(ticket.key, demand)

    def possible(self, ticket: Ticket) -> frozenset[str]:
        """As `Room.possible`; equal sets are the same object."""
        subject, version = ticket.subject, self._state.lasting_version
        known = self._possible.find(version, ticket.key)
        if known is None or known[0] is not subject:
            # The volumes that only one pod can use, and without which no node helps.
            alone = self._verdicts.demand_anywhere(subject).alone
            known = subject, self._reach(subject), alone
            self._possible.keep(version, ticket.key, known)
        _, nodes, alone = known
        return _NOWHERE if alone and not alone.isdisjoint(self._in_use()) else nodes

    def _in_use(self) -> frozenset[str]:
        def find() -> frozenset[str]:
            pods = self._state.pods.values()
            return frozenset(pod_key(it.namespace, name) for it in pods for name in it.claims)

        return self._claims_in_use.of(self._state.version, (), find)

    def _reach(self, subject: Subject) -> frozenset[str]:
        try:
            needs = self._verdicts.shape_of_needs(subject)
        except QuantityError:
            return _NOWHERE
        version = self._state.lasting_version

        def find() -> frozenset[str]:
            found = reach(self._state, subject.pod, subject.new_claims)
            return self._alike.of(version, found, lambda: found)

        return self._reaches.of(version, needs, find)

    def unpromised(self, node: str) -> Amounts:
        """As `Room.unpromised`: a promise counts on each node to which it may lead."""
        info = self._state.nodes.get(node)
        left = dict(info.free) if info else {}
        for amounts in self._reservations.promised_on(node):
            for resource, amount in amounts.items():
                left[resource] = left.get(resource, 0) - amount
        return left

    def ends(self, node: str) -> list[KnownEnd]:
        """As `Room.ends`."""
        info, now, pods = self._state.nodes.get(node), datetime.now(UTC), self._pods()
        found = []
        for it in info.pods.values() if info else ():
            ends_at = pod.ends_at if (pod := pods.get((it.namespace, it.name))) else None
            if ends_at is not None:
                left = max(0.0, (ends_at - now).total_seconds()) + it.grace
                found.append(KnownEnd(left, it.requested))
        return sorted(found, key=lambda it: it.seconds)

    def idle(self, ticket: Ticket) -> int:
        """Return how many servers have what a ticket waits for, and haven't been used for long.

        Only servers that have some of its device count; none if it needs no device.
        """
        device = ticket.device
        if device is None:
            return 0
        now = time.monotonic()
        self._idle = {key: it for key, it in self._idle.items() if now - it[0] <= _SURE_SECONDS}
        key = self.possible(ticket), device
        if key not in self._idle:
            self._idle[key] = now, self._count_idle(*key)
        return self._idle[key][1]

    def _count_idle(self, possible: frozenset[str], device: str) -> int:
        unused, nodes = self._unused(), self._state.nodes
        there = (nodes[it] for it in possible & nodes.keys()) if unused else ()
        pods = (it for node in there for it in node.pods.values())
        return sum(
            1 for it in pods if (it.namespace, it.name) in unused and it.requested.get(device)
        )
