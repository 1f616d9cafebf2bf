"""The line of people who wait for room, on the live view: serves it at each change.

Whoever is called has a reservation from that tick on. While contact with the cluster is lost,
nobody is called, and nobody loses a place.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from math import inf

import msgspec

from gpuspawner.cluster.background import RESTS
from gpuspawner.cluster.health import Forbidden, Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.servers import ServerPod
from gpuspawner.line.front_of_line import Fronts
from gpuspawner.line.held_back import Allows, HeldBack
from gpuspawner.line.line_room import LineRoom
from gpuspawner.line.order import PART, Serving
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.line.tickets import Line, Ticket
from gpuspawner.line.usual_waits import UsualWait, WaitedFor, Waits
from gpuspawner.offers.vendors import HOSTNAME
from gpuspawner.preflight.decision import Decision, Overruled, Reason, Refuse, Start, Wait
from gpuspawner.preflight.nobody_waits import WhoWaits
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.priority import priority_of
from gpuspawner.scheduling.verdicts import Subject, Verdicts

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 1.0
"""How often the line is served if nothing changes: some promises end with time alone."""
Hostnames = tuple[str, ...]
"""The nodes that a pod must be kept off, by their labels."""


class _Waiter(msgspec.Struct, frozen=True):
    """One who waits; *called* gets the nodes that its pod must be kept off."""

    proposal: Proposal
    called: asyncio.Future[Hostnames]
    is_checked: bool


class PlaceInLine(msgspec.Struct, frozen=True):
    """Where somebody stands in line.

    Attributes:
        place: 1 for the first.
        usual: How long others have lately waited for the same; None if nobody knows.
        idle: How many servers have what is waited for, and haven't been used for long.
        kept: How many GPUs are free on the node on which it collects, of those that it needs.
        lost_in: After how many seconds the place is lost, because no node can hold the server;
            None if one can.
    """

    place: int
    usual: UsualWait | None
    idle: int
    kept: int = 0
    lost_in: float | None = None


class WaitingLine(WhoWaits):
    """One for the whole hub.

    Attributes:
        held_back: Those who aren't called for now.

    Args:
        decide: Decides about a proposal at this moment, leaving the line aside.
        stored_places: The places of those who haven't come back yet since the hub started.
        part: On which part of the nodes servers collect, as `order.PART`.
        pods, unused: As `LineRoom`.
    """

    def __init__(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        reservations: Reservations,
        decide: Callable[[Proposal], Decision],
        stored_places: StoredPlaces,
        part: float = PART,
        pods: Callable[[], Mapping[Key, ServerPod]] = dict,
        unused: Callable[[], Collection[Key]] = frozenset,
    ) -> None:
        self._view = view
        self._verdicts = verdicts
        self._reservations = reservations
        self._decide = decide
        self._stored_places = stored_places
        self._waits = Waits()
        self._line = Line()
        self._serving = Serving(self._line, part)
        self._fronts = Fronts(self._line, self._decision, self._is_tried, self._renewed)
        self._waiters: dict[Key, _Waiter] = {}
        self.held_back = HeldBack(self._line, self._serving, self.look)
        self._room = LineRoom(view.state, verdicts, reservations, self._promise, pods, unused)
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._line)

    def ticket(
        self,
        proposal: Proposal,
        person: Hashable,
        since: float,
        weight: float = 1.0,
        lifetime: float | None = None,
        *,
        is_checked: bool = True,
    ) -> Ticket | None:
        """Make a ticket, as `Ticket`; None if nobody can read the pod."""
        subject = proposal.subject
        if isinstance(subject, Undecodable):
            return None
        requests = self._verdicts.demand_anywhere(subject).requests
        try:
            needs, shape = self._needs_and_shape(subject)
        except QuantityError:
            return None
        key = proposal.key
        return Ticket(
            key, person, needs, requests, since, weight, lifetime, subject, shape, is_checked
        )

    def _needs_and_shape(self, subject: Subject) -> tuple[Hashable, Hashable]:
        verdicts, priority = self._verdicts, priority_of(subject.pod, self._view.state)
        labels = verdicts.shape(subject) if verdicts.depends_on_labels(subject.pod) else None
        return verdicts.shape_of_needs(subject), (priority, labels)

    def _renewed(self, ticket: Ticket) -> Ticket:
        """Let a ticket change its lane if it needs something else now; it keeps its time.

        The first server that mounts a home decides in which zone the home's volume is made, so the
        owner's other servers don't wait for the same as before.
        """
        needs, shape = self._needs_and_shape(ticket.subject)
        if (needs, shape) == (ticket.needs, ticket.shape):
            return ticket
        renewed = msgspec.structs.replace(ticket, needs=needs, shape=shape)
        self._serving.renew(renewed)
        return renewed

    @contextmanager
    def join(
        self,
        ticket: Ticket,
        proposal: Proposal,
        allows: Allows | None = None,
        *,
        is_away: bool = False,
    ) -> Iterator[asyncio.Future[Hostnames]]:
        """Join the line; leaving the context leaves it.

        With *allows*, the server isn't called before that says that policies allow it. If its owner
        *is_away*, it isn't called before `HeldBack.owner_back`.

        Yields:
            What gets the nodes that the pod must be kept off, once room is promised elsewhere.
        """
        called: asyncio.Future[Hostnames] = asyncio.get_running_loop().create_future()
        waiter = self._waiters[ticket.key] = _Waiter(proposal, called, ticket.is_checked)
        self._serving.join(ticket)
        if allows is None:
            self._waits.join(ticket.key, _kind(proposal), ticket.since)
        else:  # how long it waits says nothing about what it waits for
            self.held_back.limit(ticket, allows)
        if is_away:
            self.held_back.owner_away(ticket)
        self.look()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._serve_while_somebody_waits())
        try:
            yield called
        finally:
            if self._waiters.get(ticket.key, waiter) is waiter:  # it hasn't joined again since
                self.held_back.forget(ticket)
                self._waits.leave(ticket.key)
                if self._waiters.pop(ticket.key, None):
                    self._serving.leave(ticket)

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits, here or on the way back."""
        return not len(self._line) and not self._stored_places.are_awaited

    def waiting(self) -> Counter[str]:
        """As `WhoWaits.waiting`."""
        is_limited = self.held_back.is_limited
        wanted = [it.proposal for key, it in self._waiters.items() if not is_limited(key)]
        offers = ((it.profile, it.grant.accelerator) for it in wanted)
        return Counter(
            it.resource if profile else it.key for profile, it in offers if it is not None
        )

    def places_of(self, person: Hashable) -> int:
        """Return how many places a person has."""
        return self._line.places_of(person)

    def standing(self, ticket: Ticket) -> PlaceInLine:
        """Return a ticket's place among those who wait for any of the same nodes."""
        ticket = self._line.find(ticket.key) or ticket  # it may have changed its lane
        place = 1 + self._ahead_of(ticket) + self._stored_places.before(ticket.since)
        usual = self._waits.usual(_kind(self._waiters[ticket.key].proposal), time.time())
        kept = next((amount for _, _, amount in self._kept_of(ticket)), 0)
        lost_in = self._fronts.seconds_left(ticket)
        return PlaceInLine(place, usual, self._room.idle(ticket), kept, lost_in)

    def kept(self) -> Iterator[tuple[str, str, int]]:
        """Yield the nodes on which servers collect, the resource, and how many are free there."""
        for ticket in self._line:
            yield from self._kept_of(ticket)

    def _kept_of(self, ticket: Ticket) -> Iterator[tuple[str, str, int]]:
        node, device = self._serving.collects_on(ticket), ticket.device
        if node is not None and device is not None:
            free = max(0, self._room.unpromised(node).get(device, 0))
            yield node, device, min(ticket.requests[device], free)

    def _ahead_of(self, ticket: Ticket) -> int:
        version = self._view.state.version
        return self._line.ahead_of(ticket, time.time(), self._room.possible, version)

    def ahead_of(self, proposal: Proposal) -> int:
        """Return how many people in line wait for any of the nodes of somebody who isn't."""
        ticket = self._newcomer(proposal, proposal.owner)
        return self._ahead_of(ticket) if ticket else 0

    def delayed_by(self, proposal: Proposal) -> int:
        """Return how many people in line are ahead if a start has to wait for one of them; or 0.

        Who waits already would leave the line for it, and come after all others. Those who aren't
        called now are counted, but nobody has to wait for them.
        """
        ticket = self._newcomer(proposal)
        if ticket is None:
            return 0
        ahead = self._ahead_of(ticket)
        waits = (
            self._stored_places.are_awaited
            or (self._is_behind(ticket) and self._needs_promised_room(ticket, ahead))
            or self._waits_for_the_same(ticket)
            or self._serving.would_delay(ticket, self._room, time.time())
        )
        return max(1, ahead) if waits else 0

    def _needs_promised_room(self, ticket: Ticket, ahead: int) -> bool:
        """Whether its room is promised to others, or the next in line would collect there then."""
        room = self._room
        return (ahead > 0 and room.is_promised(ticket)) or (
            self._serving.collects_on(ticket) in room.possible(ticket)
        )

    def _is_behind(self, ticket: Ticket) -> bool:
        """Whether somebody else in line who may be called waits for any of a newcomer's nodes."""
        possible, mine = self._room.possible, self._room.possible(ticket)
        others = (it.first_besides(ticket.key) for it in self._line.lanes.values())
        return any(
            it.needs == ticket.needs or not possible(it).isdisjoint(mine) for it in others if it
        )

    def _waits_for_the_same(self, ticket: Ticket) -> bool:
        """Whether somebody else in line needs the same, and wasn't called just now.

        A pool of which nobody knows whether it may grow is tried by one at a time, for example.
        What fits now doesn't wait for those whom their labels or priority keep off that node.
        """
        fits = self._verdicts.fits
        fits_now = fits(ticket.subject)
        return any(
            it.shape == ticket.shape or not fits_now or fits(it.subject)
            for it in self._firsts_of_same_needs(ticket)
        )

    def _firsts_of_same_needs(self, ticket: Ticket) -> Iterator[Ticket]:
        """Yield the first of each lane whose people need the same, without the ticket itself."""
        for key, lane in self._line.lanes.items():
            if key.needs == ticket.needs and (first := lane.first_besides(ticket.key)):
                yield first

    def _newcomer(self, proposal: Proposal, person: Hashable = "") -> Ticket | None:
        """Make a ticket for a server that isn't in line, to ask about it; None if that is in vain.

        It is if nobody waits, or if the pod can't be read. The ticket is behind all others,
        whatever the clock says.
        """
        return None if self.is_empty else self.ticket(proposal, person, inf)

    def look(self) -> None:
        """Call everybody whose turn it is. Never raises, or a fault would end all waits."""
        health = self._view.health()
        if not isinstance(health, Live | Forbidden):
            self._fronts.lose_contact()
            return
        if not len(self._line):
            return
        first_awaited = self._stored_places.first
        try:
            self._let_go(first_awaited)
            if isinstance(health, Forbidden):
                return  # nobody knows of any room
            for ticket in self._serving.serve(self._room, time.time(), first_awaited):
                self._waiters.pop(ticket.key, None)
                self._waits.call(ticket.key, time.time())
        except Exception:
            log.exception("The line can't be served right now")

    async def _serve_while_somebody_waits(self) -> None:
        again = time.monotonic()
        while len(self._line):
            await self._view.changed(_AGAIN_SECONDS)
            await asyncio.sleep(again - time.monotonic())
            began = time.thread_time()
            self.look()
            self.held_back.ask_policies()
            again = time.monotonic() + RESTS * (time.thread_time() - began)

    def _let_go(self, first_awaited: float) -> None:
        """Call those who need no place any more."""
        for ticket, decision in self._fronts.done(first_awaited):
            waiter = self._waiters.pop(ticket.key)
            self._serving.leave(ticket)
            # The reservation counts from this moment on, so that the next doesn't follow it.
            if isinstance(decision, Wait):
                self._reservations.take_of_new_node(ticket.key, ticket.subject)
            _call(waiter, ())

    def _decision(self, key: Key) -> Decision:
        """Decide about one who waits; who would start without room, too, doesn't wait for it."""
        waiter = self._waiters[key]
        if waiter.is_checked:
            return self._decide(waiter.proposal)
        grant = waiter.proposal.grant
        return Start(grant, (Overruled(Refuse(grant, Reason.BUSY)),))

    def _is_tried(self, ticket: Ticket) -> bool:
        others = self._reservations.of_new_nodes(besides=ticket.key).values()
        return any(self._verdicts.shape_of_needs(it) == ticket.needs for it in others)

    def _promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        if self._would_pass(ticket):
            return False
        waiter = self._waiters[ticket.key]
        hostnames = self._hostnames(kept_off)
        subject = waiter.proposal.kept_off(hostnames).subject
        if not isinstance(subject, Subject) or (kept_off and not self._has_room(ticket, subject)):
            return False
        self._reservations.take(ticket.key, subject)
        _call(waiter, hostnames)
        return True

    def _would_pass(self, ticket: Ticket) -> bool:
        """Whether somebody ahead needs the same, and waits only until it is sure where others go.

        Only their labels or priority make them another lane, so one may be sure before the other.
        """
        fits, lane = self._verdicts.fits, ticket.lane
        return any(
            it.arrival < ticket.arrival
            and it.lane._replace(shape=lane.shape) == lane
            and fits(it.subject)
            for it in self._firsts_of_same_needs(ticket)
        )

    def _has_room(self, ticket: Ticket, subject: Subject) -> bool:
        demand = self._verdicts.demand(subject)
        return demand is not None and self._reservations.has_room(ticket.key, demand)

    def _hostnames(self, nodes: frozenset[str]) -> Hostnames:
        known = self._view.state.nodes
        return tuple(sorted(known[it].labels.get(HOSTNAME, it) for it in nodes if it in known))


def _kind(proposal: Proposal) -> WaitedFor:
    """What somebody waits for, as they read its name."""
    return *proposal.kind, proposal.grant.gpus


def _call(waiter: _Waiter, kept_off: Hostnames) -> None:
    if not waiter.called.done():  # else, its start has just been cancelled
        waiter.called.set_result(kept_off)
