"""What the line asks about nodes, answered by verdicts and reservations."""

from collections.abc import Callable, Collection, Sequence

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.line.server_ends import KnownEnds
from gpuspawner.line.tickets import KnownEnd, Ticket
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.node_info import pod_key
from gpuspawner.scheduling.node_resources_fit import fits, wanted
from gpuspawner.scheduling.reach import reach
from gpuspawner.scheduling.requests import Amounts
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Verdicts

_NOWHERE: frozenset[str] = frozenset()
_KEPT = 10_000
"""For how many tickets, and kinds of pods, the nodes are kept that they could use."""


class LineRoom:
    """The nodes of the cluster, as the line sees them at one moment.

    Args:
        proposal: Returns what a ticket's server would be.
        reserve: As `Room.promise`, and calls the ticket.
    """

    def __init__(
        self,
        state: ClusterState,
        verdicts: Verdicts,
        reservations: Reservations,
        known_ends: KnownEnds,
        proposal: Callable[[Ticket], Proposal],
        reserve: Callable[[Ticket, frozenset[str]], bool],
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._reservations = reservations
        self._known_ends = known_ends
        self._proposal = proposal
        self.promise = reserve
        self._possible = UntilChanged[tuple[Proposal, frozenset[str], frozenset[str]]](_KEPT)
        self._claims_in_use = UntilChanged[frozenset[str]]()
        self._reaches = UntilChanged[frozenset[str]](_KEPT)
        self._alike = UntilChanged[frozenset[str]]()
        self._meeting = UntilChanged[bool]()

    def fitting(self, ticket: Ticket) -> Collection[str]:
        """As `Room.fitting`; none if the promise wouldn't be certain."""
        if not self._have_enough(ticket):
            return _NOWHERE
        subject = self._proposal(ticket).subject
        nodes = _NOWHERE if isinstance(subject, Undecodable) else self._verdicts.nodes(subject)
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
        subject = self._proposal(ticket).subject
        demand = None if isinstance(subject, Undecodable) else self._verdicts.demand(subject)
        return demand is not None and not self._reservations.has_room(ticket.key, demand)

    def possible(self, ticket: Ticket) -> frozenset[str]:
        """As `Room.possible`; equal sets are the same object."""
        proposal, version = self._proposal(ticket), self._state.lasting_version
        known = self._possible.find(version, ticket.key)
        if known is None or known[0] is not proposal:
            known = proposal, self._reach(proposal), self._alone(proposal)
            self._possible.keep(version, ticket.key, known)
        _, nodes, alone = known
        return _NOWHERE if alone and not alone.isdisjoint(self._in_use()) else nodes

    def _alone(self, proposal: Proposal) -> frozenset[str]:
        """Return the volumes that only one pod can use, and without which no node helps."""
        subject = proposal.subject
        if isinstance(subject, Undecodable):
            return _NOWHERE
        return self._verdicts.demand_anywhere(subject).alone

    def _in_use(self) -> frozenset[str]:
        def find() -> frozenset[str]:
            pods = self._state.pods.values()
            return frozenset(pod_key(it.namespace, name) for it in pods for name in it.claims)

        return self._claims_in_use.of(self._state.version, (), find)

    def meet(self, one: Ticket, other: Ticket) -> bool:
        """Whether there is a node that is possible for both.

        Each who waits asks this about one ticket of each lane, all the time.
        """
        both = self.possible(one), self.possible(other)
        version = self._state.lasting_version
        return self._meeting.of(version, both, lambda: not both[0].isdisjoint(both[1]))

    def _reach(self, proposal: Proposal) -> frozenset[str]:
        subject = proposal.subject
        if isinstance(subject, Undecodable):
            return _NOWHERE
        try:
            needs = self._verdicts.shape_of_needs(subject)
        except QuantityError:
            return _NOWHERE
        version = self._state.lasting_version

        def find() -> frozenset[str]:
            found = reach(self._state, subject.pod, subject.new_claims)
            return self._alike.of(version, found, lambda: found)

        return self._reaches.of(version, needs, find)

    def free(self, node: str) -> Amounts:
        """Return what nobody has."""
        info = self._state.nodes.get(node)
        return info.free if info else {}

    def unpromised(self, node: str) -> Amounts:
        """As `Room.unpromised`: a promise counts on each node to which it may lead."""
        left = dict(self.free(node))
        for amounts in self._reservations.promised_on(node):
            for resource, amount in amounts.items():
                left[resource] = left.get(resource, 0) - amount
        return left

    def ends(self, node: str) -> Sequence[KnownEnd]:
        """As `Room.ends`."""
        info = self._state.nodes.get(node)
        return self._known_ends.ends(info) if info else ()
