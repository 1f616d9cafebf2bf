"""What the line asks about nodes, answered by verdicts and reservations."""

from collections.abc import Callable, Collection, Hashable, Sequence

from gpuspawner.kube.objects import Undecodable
from gpuspawner.preflight.durations import Durations
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.reservations import Reservations
from gpuspawner.preflight.verdicts import Verdicts
from gpuspawner.queue.room import Amounts, KnownEnd
from gpuspawner.queue.ticket import Key, Ticket
from gpuspawner.scheduling.state import ClusterState

_NOWHERE: frozenset[str] = frozenset()


class LineRoom:
    """The nodes of the cluster, as the line sees them at one moment.

    Args:
        proposal: Returns what a ticket's server would be.
        called: Is told the nodes that a server that was promised room is kept off.
    """

    def __init__(
        self,
        state: ClusterState,
        verdicts: Verdicts,
        reservations: Reservations,
        durations: Durations,
        proposal: Callable[[Key], Proposal],
        called: Callable[[Ticket, frozenset[str]], bool],
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._reservations = reservations
        self._durations = durations
        self._proposal = proposal
        self._called = called
        self._reaches: dict[tuple[Key, Hashable], frozenset[str]] = {}
        self._version = -1

    def fitting(self, ticket: Ticket) -> Collection[str]:
        """As `Room.fitting`; none if the promise wouldn't be certain."""
        subject = self._proposal(ticket.key).subject
        if isinstance(subject, Undecodable):
            return _NOWHERE
        demand = self._verdicts.demand(subject)
        if demand is None or not self._reservations.has_room(ticket.key, demand):
            return _NOWHERE
        return _NOWHERE if demand.nodes is None else demand.nodes

    def is_promised(self, ticket: Ticket) -> bool:
        """Whether all room for a server is promised to others."""
        subject = self._proposal(ticket.key).subject
        demand = None if isinstance(subject, Undecodable) else self._verdicts.demand(subject)
        return demand is not None and not self._reservations.has_room(ticket.key, demand)

    def possible(self, ticket: Ticket) -> frozenset[str]:
        """As `Room.possible`; each who waits asks about one ticket of each lane, all the time."""
        if self._version != self._state.version:
            self._version = self._state.version
            self._reaches.clear()
        asked = ticket.key, ticket.needs
        if asked not in self._reaches:
            self._reaches[asked] = self._reach(ticket)
        return self._reaches[asked]

    def _reach(self, ticket: Ticket) -> frozenset[str]:
        subject = self._proposal(ticket.key).subject
        return _NOWHERE if isinstance(subject, Undecodable) else self._verdicts.reach(subject)

    def free(self, node: str) -> Amounts:
        """As `Room.free`, without promises: nobody knows to which node they lead."""
        info = self._state.nodes.get(node)
        return info.free if info else {}

    def size(self, node: str) -> Amounts:
        """As `Room.size`."""
        info = self._state.nodes.get(node)
        return info.allocatable if info else {}

    def ends(self, node: str) -> Sequence[KnownEnd]:
        """As `Room.ends`."""
        info = self._state.nodes.get(node)
        return self._durations.ends(info) if info else ()

    def promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        """As `Room.promise`."""
        return self._called(ticket, kept_off)
