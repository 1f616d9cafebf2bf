"""The preflight: decides whether a pod would start, before it exists.

It has three gates: `Preflight.check` answers the form, `Preflight.begin` comes before the start,
and `Preflight.confirm` judges the pod that KubeSpawner sends. The key of a reservation is the
namespace and the pod name, so the gates may run on different spawner objects, as they do in
JupyterHub 6.1 after a failed start.
"""

import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.pods import Pod
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight import facts
from gpuspawner.preflight.alternatives import Variants
from gpuspawner.preflight.counts import NodeCounts
from gpuspawner.preflight.decider import Decider
from gpuspawner.preflight.decision import (
    Alternative,
    Decision,
    InQueue,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.preflight.nobody_waits import MakesLine, nobody_waits
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.reservations.wait_queue import Waiter, WaitQueue
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scaling.pools import Pools
from gpuspawner.scheduling.verdicts import PodShape, Subject, Verdicts

if TYPE_CHECKING:
    from gpuspawner.kueue.queues import Queues

# How long a start waits, in seconds, for each thing that isn't known yet. The view usually shows a
# pod's binding within a second; the rest is for a busy hub, or a scheduler that was restarted.
START_PATIENCE = 30.0

# Some promises end with time alone, so a start that waits looks again although nothing changed.
_LOOK_AGAIN_SECONDS = 1.0

# How far the view may lag behind KubeSpawner, which has seen a pod go, in seconds.
_LAG = 2.0


class Preflight:
    """Decides about pods on the live view of the cluster. One for the whole hub.

    All methods run on the view's event loop.

    Args:
        patience: Seconds that `begin` and `confirm` wait for facts that aren't known yet.
        lag: Seconds that they wait for a pod of the same name to leave the view.
        pools: The pools that may grow; by default those that the view shows.
        line: Makes the line of those who wait; by default, nobody does.
    """

    def __init__(
        self,
        view: ClusterView,
        patience: float = START_PATIENCE,
        lag: float = _LAG,
        pools: Pools | None = None,
        line: MakesLine = nobody_waits,
    ) -> None:
        self._view = view
        self._patience = patience
        self._lag = lag
        self._verdicts = Verdicts(view.state)
        self._queue = WaitQueue(view.wake)
        self.reservations = Reservations(view.state, self._verdicts, view.wake)
        pools = pools or Pools(view.state, view.autoscalers)
        self.to_come = NodesToCome(view.state, self._verdicts, self.reservations, pools)
        self._counts = NodeCounts(view.state)
        known = view.state, self._verdicts, self.to_come, self._counts
        self._decider = Decider(*known, self._queues)
        self.line = line(view, self._verdicts, self.reservations, self._decide_alone)
        view.listen(self.reservations.look)

    def _queues(self) -> "Queues":
        """Return what Kueue says of a pod that names one of its queues."""
        from gpuspawner.kueue.queues import Queues  # hubs whose pods name none don't load it

        return Queues(self._view.queues, self._view.state)

    def check(self, proposal: Proposal) -> Decision:
        """Decide at this moment; change nothing.

        If only an older pod of the same name may be in the way, the answer is unknown: KubeSpawner
        deletes that pod when it sends the new one.
        """
        return self._unless_its_own(proposal, self._decide(proposal))

    def check_sent(self, proposal: Proposal) -> Decision:
        """As `check`, for a pod that exists: nobody in line is ahead of it.

        Kueue adds labels and tolerations to the pod when it admits it, so the pod is read anew.
        """
        pod = self._view.state.unbound_pods.get("/".join(proposal.key))
        return self._check_alone(proposal.created(pod) if pod else proposal)

    def alternatives(
        self, proposal: Proposal, variants: Variants, besides: Container[Grant] = ()
    ) -> tuple[Alternative, ...]:
        """Return what fits now, is near to the proposal and not in *besides*; none unless live."""
        if not isinstance(self._view.health(), Live):
            return ()
        return self._decider.alternatives(proposal, variants, besides, self.line.is_ahead_of)

    def shape(self, proposal: Proposal) -> PodShape | None:
        """Return what the scheduler reads of the pod at this moment; None if it can't be read."""
        subject = proposal.subject
        return self._verdicts.shape(subject) if isinstance(subject, Subject) else None

    def depends_on_labels(self, pod: Pod | None) -> bool:
        """Whether the answer depends on the labels and the name of the pod at this moment.

        *pod* is None if it can't be read.
        """
        return pod is None or self._verdicts.depends_on_labels(pod)

    def places(self, proposal: Proposal) -> bytes:
        """As `Verdicts.places`; empty if the pod can't be read."""
        subject = proposal.subject
        return self._verdicts.places(subject) if isinstance(subject, Subject) else b""

    def fits(self, proposal: Proposal) -> bool:
        """Whether a node has room for the pod at this moment."""
        return self._decider.fits(proposal)

    def is_sure_of(self, proposal: Proposal) -> bool:
        """Whether the pod surely has room beside all promised pods, or a node surely comes."""
        decision, subject = self.check(proposal), self._decider.subject(proposal)
        if isinstance(decision, Wait):
            return isinstance(decision.scale_up, CanScaleUp)
        if decision != Start(proposal.grant) or isinstance(subject, Undecodable):
            return False
        demand = self._verdicts.demand(subject)
        return demand is None or self.reservations.has_room(proposal.key, demand)

    def lacks_devices(self, proposal: Proposal) -> bool:
        """Whether no node has enough free devices for the pod, leaving its other fields aside."""
        pod = proposal.decoded
        return pod is not None and self._counts.lacks_devices(pod)

    def room(self, proposal: Proposal) -> ResourceRoom | None:
        """Return how many GPUs are on the nodes on which the pod could run; None without either."""
        return self._decider.room(proposal)

    def try_again(self, proposal: Proposal) -> Refuse:
        """Refuse the pod for the moment, because the answer isn't known in time."""
        return self._decider.try_again(proposal, 0.0)

    async def begin(self, proposal: Proposal) -> Decision:
        """Decide and, for a start, take a reservation; wait if other pods may take the room.

        A pod that doesn't fit even now is refused at once. If it fits, but pods with a reservation
        or pending pods might take the room, it waits in the wait queue until the view shows where
        they went; if that takes too long, the refusal is ``try-again``. A `Wait` takes a
        reservation of a node to come.
        """
        await self._view.first_list(self._patience)
        await self._catch_up(proposal)
        with self._queue.join() as waiter:
            return await self._settle(proposal, lambda: self._try_to_take(proposal, waiter))

    async def confirm(self, proposal: Proposal) -> Decision:
        """Decide about the pod that KubeSpawner sends, without counting its own reservation.

        A start keeps the reservation, now for this pod; a refusal ends it. If there is none (the
        view wasn't live, or it has ended), one is taken as in `begin`. Otherwise this never joins
        the wait queue: those who wait there may wait for this very pod.
        """
        if self.reservations.find(proposal.key) is None:
            return await self.begin(proposal)
        await self._catch_up(proposal)
        decision = await self._settle(proposal, lambda: self._try_to_move(proposal))
        if isinstance(decision, Refuse):
            self.release(*proposal.key)
        return decision

    def release(self, namespace: str, name: str) -> None:
        """End the pod's reservation, if it has one: the start is over. Never raises."""
        self.reservations.release((namespace, name))

    def _decide(self, proposal: Proposal) -> Decision:
        """Decide about a proposal, behind those who are in line; who was called is not."""
        decision = self._decide_alone(proposal)
        held = self.reservations.find(proposal.key)
        is_called = held is not None and not held.is_over
        if self.line.is_empty or proposal.queue or is_called:
            return decision
        if isinstance(decision, Refuse):
            return replace(decision, in_line=self.line.ahead_of(proposal))
        if decision != Start(proposal.grant):
            return decision  # it takes nothing that others wait for; the line lets such go too
        health = self._view.health()
        if isinstance(health, Live) and (in_line := self.line.delayed_by(proposal)):
            return self._decider.behind(proposal, in_line, health.age)
        return decision

    def _check_alone(self, proposal: Proposal) -> Decision:
        """As `check`, for a pod that is sent already: nobody in line is ahead of it."""
        return self._unless_its_own(proposal, self._decide_alone(proposal))

    def _unless_its_own(self, proposal: Proposal, decision: Decision) -> Decision:
        if self._may_be_its_own(proposal, decision):
            return Start(proposal.grant, (UnknownRules(("a pod of this name is still there",)),))
        return decision

    def _decide_alone(self, proposal: Proposal) -> Decision:
        health = self._view.health()
        if not isinstance(health, Live):
            return Start(proposal.grant, (ViewNotLive(health),))
        return self._decider.decide(proposal, health.age)

    def _may_be_its_own(self, proposal: Proposal, decision: Decision) -> bool:
        """Whether the decision may be a no only because of an older pod of the same name."""
        if not isinstance(decision, Refuse) or decision.reason is not Reason.BUSY:
            return False
        key, pod = "/".join(proposal.key), proposal.decoded
        return pod is not None and facts.could_replace(self._view.state, key, pod)

    async def _catch_up(self, proposal: Proposal) -> None:
        """Wait a moment for the view to lose an older pod of the name that is already gone.

        A pod that stays in view still exists: nobody deletes it before the new one is sent.
        """
        if proposal.older_stays:
            return
        deadline = time.monotonic() + self._lag
        while self._may_be_its_own(proposal, self._decide(proposal)):
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
        decision = self.check(proposal)
        if isinstance(self._view.health(), Stale):
            return None
        return decision if self._view.in_touch() or not isinstance(decision, Refuse) else None

    def _last_word(self, proposal: Proposal) -> Decision:
        decision, health = self.check(proposal), self._view.health()
        if isinstance(decision, Start) and isinstance(health, Live):
            return self._decider.try_again(proposal, health.age)
        return decision

    def _try_to_take(self, proposal: Proposal, waiter: Waiter) -> Decision | None:
        """Decide, and take the reservation in the same tick; None if the start must wait."""
        if waiter.is_blocked():
            return None
        decision, subject = self._look(proposal), self._decider.subject(proposal)
        if decision is None or not _needs_reservation(decision) or isinstance(subject, Undecodable):
            return self._reserve_new_node(proposal.key, subject, decision)
        demand = waiter.demand = self._verdicts.demand(subject)
        if demand and (waiter.is_blocked() or not self.reservations.has_room(proposal.key, demand)):
            return None
        self.reservations.take(proposal.key, subject)
        return decision

    def _reserve_new_node(
        self, key: Key, subject: Subject | Undecodable, decision: Decision | None
    ) -> Decision | None:
        """Take the reservation of a pod that waits for a node; return the decision."""
        if isinstance(decision, Wait) and isinstance(subject, Subject):
            self.reservations.take_of_new_node(key, subject)
        return decision

    def _try_to_move(self, proposal: Proposal) -> Decision | None:
        """Decide, and move the reservation to this pod; None if the start must wait."""
        reservation = self.reservations.find(proposal.key)
        decision, subject = self._look(proposal), self._decider.subject(proposal)
        if decision is None or not _needs_reservation(decision) or isinstance(subject, Undecodable):
            return self._reserve_new_node(proposal.key, subject, decision)
        if reservation is None:
            return decision
        demand, held = self._verdicts.demand(subject), self._verdicts.demand(reservation.subject)
        covered = demand and held and held.covers(demand) and not reservation.unknown
        if demand and not covered and not self.reservations.has_room(proposal.key, demand):
            return None
        self.reservations.move(reservation, subject)
        return decision


def _needs_reservation(decision: Decision) -> bool:
    return isinstance(decision, Start) and not any(
        isinstance(note, ViewNotLive | InQueue) for note in decision.notes
    )
