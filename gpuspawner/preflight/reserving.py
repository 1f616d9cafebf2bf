"""Takes the reservation of a start in the tick of its decision, or waits until there can be one."""

import time
from collections.abc import Callable

import msgspec
from msgspec import structs

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import Undecodable
from gpuspawner.preflight.decider import OLDER_POD, Decider
from gpuspawner.preflight.decision import Decision, InQueue, Refuse, Start, ViewNotLive, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.contention import Demand
from gpuspawner.scheduling.verdicts import Subject, Verdicts

# Some promises end with time alone, so a start that waits looks again although nothing changed.
_LOOK_AGAIN_SECONDS = 1.0


class Waiter(msgspec.Struct, eq=False):
    """One start in the wait queue.

    Attributes:
        demand: The room that it waits for; None if that isn't known, or if it waits for a claim.
    """

    demand: Demand | None = None


class Reserving:
    """Takes reservations of pods as they are: admission isn't asked.

    Args:
        patience: Seconds to wait for facts that aren't known yet.
        lag: Seconds to wait for a pod of the same name to leave the view.
    """

    def __init__(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        reservations: Reservations,
        decider: Decider,
        patience: float,
        lag: float,
    ) -> None:
        self._view = view
        self._verdicts = verdicts
        self._reservations = reservations
        self._decider = decider
        self._patience = patience
        self._lag = lag
        self._waiters: list[Waiter] = []
        """The wait queue: starts that wait until other pods are bound, in order of arrival."""

    async def take(self, proposal: Proposal) -> Decision:
        """Decide and, for a start, take a reservation; wait if other pods may take the room.

        A pod that doesn't fit even now is refused at once. If it fits, but pods with a reservation
        or pending pods might take the room, it waits in the wait queue until the view shows where
        they went; if that takes too long, the refusal is ``try-again``. A `Wait` takes a
        reservation of a node to come.
        """
        await self._view.first_list(self._patience)
        await self._catch_up(proposal)
        waiter = Waiter()
        self._waiters.append(waiter)
        try:
            return await self._settle(proposal, lambda: self._try_to_take(proposal, waiter))
        finally:
            self._waiters.remove(waiter)
            if self._waiters:  # the next one can try
                self._view.wake()

    async def move(self, proposal: Proposal) -> Decision:
        """Decide about the pod that admission makes, and move the start's reservation to this pod.

        If the start has none (the view wasn't live, or it has ended), one is taken as in `take`.
        Otherwise that reservation doesn't count here, and this never joins the wait queue: those
        who wait there may wait for this very pod.
        """
        if self._reservations.find(proposal.key) is None:
            return await self.take(proposal)
        await self._catch_up(proposal)
        return await self._settle(proposal, lambda: self._try_to_move(proposal))

    async def _catch_up(self, proposal: Proposal) -> None:
        """Wait a moment for the view to lose an older pod of the name that is already gone.

        A pod that stays in view still exists: nobody deletes it before the new one is sent.
        """
        if proposal.older_stays:
            return
        deadline = time.monotonic() + self._lag
        while self._decider.check(proposal) == Start(proposal.grant, (OLDER_POD,)):
            if not await self._view.changed(deadline - time.monotonic()):
                return

    async def _settle(self, proposal: Proposal, attempt: Callable[[], Decision | None]) -> Decision:
        """Try at every change of the view until there is a decision or time is up."""
        deadline = time.monotonic() + self._patience
        while (decision := attempt()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return self._last_word(proposal)
            await self._view.changed(min(left, _LOOK_AGAIN_SECONDS))
        return decision

    def _look(self, proposal: Proposal) -> Decision | None:
        """Decide at this moment; None if the view will soon know better.

        Contact is seldom lost for longer than a moment, and hides what ended in the meantime.
        """
        decision = self._decider.check(proposal)
        if isinstance(self._view.health(), Stale):
            return None
        return decision if self._view.in_touch() or not isinstance(decision, Refuse) else None

    def _last_word(self, proposal: Proposal) -> Decision:
        decision = self._decider.check(proposal)
        if isinstance(decision, Start) and isinstance(self._view.health(), Live):
            return self._decider.try_again(proposal)
        return decision

    def _is_held_up(self, waiter: Waiter) -> bool:
        """Whether a start ahead in the queue waits for room that this one needs too.

        If small starts could pass, large ones would starve.
        """
        demand, ahead = waiter.demand, self._waiters[: self._waiters.index(waiter)]
        return demand is not None and any(it.demand and it.demand.touches(demand) for it in ahead)

    def _try_to_take(self, proposal: Proposal, waiter: Waiter) -> Decision | None:
        """Decide, and take the reservation in the same tick; None if the start must wait."""
        if self._is_held_up(waiter):
            return None
        decision, subject = self._look(proposal), self._decider.subject(proposal)
        if decision is None or not _needs_reservation(decision) or isinstance(subject, Undecodable):
            return self._reserve_new_node(proposal.key, subject, decision)
        demand = self._verdicts.demand(subject)
        if demand and not self._reservations.has_volumes(proposal.key, demand):
            waiter.demand = None  # it waits for no room, so others may have what is free
            return None
        waiter.demand = demand
        if demand and (
            self._is_held_up(waiter) or not self._reservations.has_room(proposal.key, demand)
        ):
            return None
        self._reservations.take(proposal.key, subject)
        return decision

    def _try_to_move(self, proposal: Proposal) -> Decision | None:
        """Decide, and move the reservation to this pod; None if the start must wait."""
        reservation = self._reservations.find(proposal.key)
        decision, subject = self._look(proposal), self._decider.subject(proposal)
        if decision is None or not _needs_reservation(decision) or isinstance(subject, Undecodable):
            return self._reserve_new_node(proposal.key, subject, decision)
        if reservation is None:
            return decision
        demand, held = self._verdicts.demand(subject), self._verdicts.demand(reservation.subject)
        covered = demand and held and held.covers(demand) and not reservation.unknown
        if demand and not covered:
            # Claims of its own reservation aren't asked for again: two would wait for each other.
            promised = held or self._verdicts.demand_anywhere(reservation.subject)
            more = structs.replace(demand, alone=demand.alone - promised.alone)
            if not self._reservations.has_room(proposal.key, more):
                return None
        self._reservations.take(proposal.key, subject)
        return decision

    def _reserve_new_node(
        self, key: Key, subject: Subject | Undecodable, decision: Decision | None
    ) -> Decision | None:
        """Take the reservation of a pod that waits for a node; return the decision."""
        if isinstance(decision, Wait) and isinstance(subject, Subject):
            self._reservations.take_of_new_node(key, subject)
        return decision


def _needs_reservation(decision: Decision) -> bool:
    return isinstance(decision, Start) and not any(
        isinstance(note, ViewNotLive | InQueue) for note in decision.notes
    )
