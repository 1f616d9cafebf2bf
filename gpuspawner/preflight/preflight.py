"""The preflight: decides whether a pod would start, before it exists, and promises it its room.

`Preflight.examine` answers the form, and `Preflight.begin` comes before the start.
`Preflight.confirm` judges what admission makes of a pod: always of the pod that KubeSpawner sends,
and before the start too if `begin` may be overruled. The key of a reservation is the namespace and
the pod name, so the gates may run on different spawner objects, as they do in JupyterHub 6.1 after
a failed start.

Admission may add a toleration that lets a pod fit, or a further demand, perhaps for one user alone.
So a pod is refused, or told to wait for a node, without asking admission only if no node has enough
devices, which admission can't give.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import Undecodable
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.alternatives import Variants, request_for
from gpuspawner.preflight.decider import Decider
from gpuspawner.preflight.decision import (
    Alternative,
    Decision,
    Reason,
    Refuse,
    Start,
    UnknownRules,
    Wait,
    rejected,
)
from gpuspawner.preflight.dry_runs import Admission, TooManyDryRunsError, changes
from gpuspawner.preflight.learned_admission import LearnedAdmission, unless_mended
from gpuspawner.preflight.nobody_waits import MakesLine, nobody_waits
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Rejection, WebhookFailed
from gpuspawner.preflight.reserving import Reserving
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scaling.pools import Pools
from gpuspawner.scheduling.verdicts import Verdicts

# How long a start waits, in seconds, for each thing that isn't known yet. The view usually shows a
# pod's binding within a second; the rest is for a busy hub, or a scheduler that was restarted.
START_PATIENCE = 30.0

# How far the view may lag behind KubeSpawner, which has seen a pod go, in seconds.
_LAG = 2.0

_Question = Callable[[Proposal], Awaitable[Decision]]
"""What is asked about a pod, after admission or without it."""

# Each round asks about at most three alternatives; the next round replaces those it rejects.
_ROUNDS = 4
_MAY_BE_LEFT_ALONE = UnknownRules(("nobody knows whether Kueue holds the pod back",))
_MAY_TOLERATE = UnknownRules(("nobody knows which tolerations admission adds to the pod",))
_OUTDATED = UnknownRules(("contact with the API server is lost, and pods may have ended since",))


class Preflight:
    """Decides about pods on the live view of the cluster. One for the whole hub.

    All methods run on the view's event loop.

    Args:
        patience: Seconds that `begin` and `confirm` wait for facts that aren't known yet.
        lag: Seconds that they wait for a pod of the same name to leave the view.
        pools: The pools that may grow; by default those that the view shows.
        line: Makes the line of those who wait; by default, nobody does.

    Attributes:
        decider: Decides about a pod as it is, at one moment.
        reserving: Takes the reservation of a pod as it is.
        learned: What is known of admission.
    """

    def __init__(
        self,
        view: ClusterView,
        patience: float = START_PATIENCE,
        lag: float = _LAG,
        pools: Pools | None = None,
        line: MakesLine = nobody_waits,
    ) -> None:
        self.verdicts = Verdicts(view.state)
        self.reservations = Reservations(view.state, self.verdicts, view.wake)
        self._view = view
        pools = pools or Pools(view.state, view.autoscalers)
        self.to_come = NodesToCome(view.state, self.verdicts, self.reservations, pools)
        promised = self.verdicts, self.reservations
        self.decider = Decider(view, *promised, self.to_come, line)
        self.line = self.decider.line
        self.reserving = Reserving(view, *promised, self.decider, patience, lag)
        self.learned = LearnedAdmission()
        view.listen(self.reservations.look)

    async def foretell(self, proposal: Proposal, admission: Admission) -> Decision:
        """Decide for an open form whose choices change: ask admission only as `begin` does.

        If admission leaves the pod as it is, the alternatives need no dry run either.

        Raises:
            TooManyDryRunsError: No dry run got its turn in time, so nothing is known.
        """
        decision = self.decider.check(proposal)
        if not self._has_to_ask(proposal, decision):
            self.learned.verify(proposal, decision, admission)
            return decision
        admitted = await self.learned.admitted(proposal, admission)
        if _is_left_alone(proposal, admitted):
            return self.decider.check(proposal)  # the view may have changed during the wait
        return await self._judged(proposal, admitted, self._check)

    async def examine(self, proposal: Proposal, admission: Admission) -> Decision:
        """Decide about the pod that admission makes; change nothing."""
        return await self._after_admission(proposal, admission, self._check)

    async def examine_instead(
        self, refusal: Refuse, proposal: Proposal, admission: Admission
    ) -> Decision:
        """Decide about an alternative; ask admission only if it was asked for the refusal."""
        if _fails_for_all(refusal):
            return refusal
        if refusal.after_admission:
            return await self.examine(proposal, admission)
        return self.decider.check(proposal)

    async def begin(self, proposal: Proposal, admission: Admission) -> Decision:
        """Decide, and take the reservation of a start, or of a node to come.

        Ask admission only about what it could turn into a start. So a yes, or a no for lack of
        devices, comes in the tick of the question. `confirm` asks admission later. Only if a pod
        names a queue of Kueue, a yes has to wait for admission until that has shown that Kueue
        holds such pods back.
        """
        decision = await self.reserving.take(proposal)
        if not self._has_to_ask(proposal, decision):
            self.learned.verify(proposal, decision, admission)
            return decision
        return await self.confirm(proposal, admission)

    async def confirm(self, proposal: Proposal, admission: Admission) -> Decision:
        """Decide about the pod that admission makes, and move the reservation to it.

        A refusal ends the reservation.
        """
        decision = await self._after_admission(proposal, admission, self.reserving.move)
        if isinstance(decision, Refuse):
            self.reservations.release(proposal.key)
        return decision

    async def secures(self, proposal: Proposal, admission: Admission) -> bool:
        """Whether the pod that admission makes surely has room beside all promised pods.

        It also has if a node surely comes for it. What its start is promised moves there in this
        tick, so nobody takes the room before `confirm`.
        """
        try:
            admitted = await self.learned.admitted(proposal, admission)
        except TooManyDryRunsError:
            return False
        admitted = unless_mended(proposal, admitted)
        return not isinstance(admitted, Rejection) and self._has_sure_room(admitted or proposal)

    def _has_sure_room(self, proposal: Proposal) -> bool:
        key, subject = proposal.key, self.decider.subject(proposal)
        decision, others = self.decider.check(proposal), self.reservations
        if isinstance(subject, Undecodable):
            return False
        if isinstance(decision, Wait):
            is_sure, move = isinstance(decision.scale_up, CanScaleUp), others.take_of_new_node
        else:
            demand = self.verdicts.demand(subject)
            has_room = demand is None or others.has_room(key, demand)
            is_sure, move = decision == Start(proposal.grant) and has_room, others.take
        if is_sure and others.find(key):
            move(key, subject)
        return is_sure

    async def to_wait(self, proposal: Proposal, admission: Admission) -> Proposal:
        """Return the proposal that waits in line: after admission, if a no of `begin` comes then.

        Otherwise the line would call whom `begin` refuses again.
        """
        if not self._has_to_ask(proposal, self.decider.check(proposal)):
            return proposal
        try:
            admitted = await self.learned.admitted(proposal, admission)
        except TooManyDryRunsError:
            return proposal
        return admitted if isinstance(admitted, Proposal) else proposal

    def may_become_start(self, proposal: Proposal, decision: Decision) -> bool:
        """Whether admission could turn the decision, a no or a wait for a node, into a start."""
        changed = self.learned.may_change(proposal.grant)
        if isinstance(decision, Wait):
            return changed and not self.decider.lacks_devices(proposal)
        if not isinstance(decision, Refuse) or decision.reason is Reason.TRY_AGAIN:
            return False
        if decision.queue is not None and not proposal.is_admitted:
            return True  # Kueue may leave the pods of this namespace alone
        return changed or not self.decider.lacks_devices(proposal)

    def _has_to_ask(self, proposal: Proposal, decision: Decision) -> bool:
        """Whether admission may allow a no, or may show that Kueue leaves the pod alone."""
        may_be_left_alone = bool(proposal.queue) and not self.learned.holds_back(proposal)
        return may_be_left_alone or self.may_become_start(proposal, decision)

    async def _after_admission(
        self, proposal: Proposal, admission: Admission, question: _Question
    ) -> Decision:
        try:
            admitted = await self.learned.admitted(proposal, admission)
        except TooManyDryRunsError:
            decision = await question(proposal)
            # A no would be a guess.
            is_no = isinstance(decision, Refuse)
            return self.decider.try_again(proposal) if is_no else decision
        return await self._judged(proposal, admitted, question)

    async def _judged(
        self, proposal: Proposal, admitted: Proposal | Rejection | None, question: _Question
    ) -> Decision:
        admitted = unless_mended(proposal, admitted)
        if isinstance(admitted, Rejection):
            return rejected(proposal.grant, admitted)
        decision = await question(admitted or proposal)
        if admitted is None:
            return self.unless_guessed(proposal, decision)
        if isinstance(decision, Refuse):
            return msgspec.structs.replace(decision, after_admission=True)
        return decision

    def unless_guessed(self, proposal: Proposal, decision: Decision) -> Decision:
        """Return what a decision is worth if nobody has said what admission makes of the pod.

        A refusal is a guess if the pod could start with the tolerations that admission has last
        added to one of its kind, or with any, if admission has never answered for one.
        """
        if not isinstance(decision, Refuse):
            return decision
        if decision.queue is not None:
            return Start(proposal.grant, (_MAY_BE_LEFT_ALONE,))
        if decision.reason is Reason.TRY_AGAIN or proposal.is_admitted:
            return decision
        tolerant = self.learned.placements.tolerant(proposal.kind, proposal.pod)
        if isinstance(self.decider.check(replace(proposal, pod=tolerant)), Refuse):
            return decision
        return Start(proposal.grant, (_MAY_TOLERATE,))

    async def _check(self, proposal: Proposal) -> Decision:
        """Decide at this moment; `begin` waits for contact before it says no."""
        decision = self.decider.check(proposal)
        if isinstance(decision, Refuse) and not self._view.in_touch():
            return Start(proposal.grant, (_OUTDATED,))
        return decision

    # What somebody who is refused can have instead

    async def with_alternatives(
        self, refusal: Refuse, proposal: Proposal, variants: Variants, admission: Admission
    ) -> Refuse:
        """Return the refusal with alternatives that this user can have now, nearest first.

        If admission was asked for the refusal, it is asked for the alternatives too.
        """
        # It isn't known yet who gets the room.
        if refusal.reason is Reason.TRY_AGAIN or _fails_for_all(refusal):
            return refusal
        if refusal.after_admission:
            found = await self._admitted_alternatives(proposal, variants, admission)
        else:
            found = self.decider.alternatives(proposal, variants)
        return msgspec.structs.replace(refusal, alternatives=found)

    async def _admitted_alternatives(
        self, proposal: Proposal, variants: Variants, admission: Admission
    ) -> tuple[Alternative, ...]:
        refused: list[Grant] = []
        accepted: list[Alternative] = []
        for _ in range(_ROUNDS):
            found = self.decider.alternatives(proposal, variants, besides=refused)
            answers = await asyncio.gather(
                *(self._is_accepted(proposal, variants, it.grant, admission) for it in found)
            )
            accepted = [it for it, yes in zip(found, answers, strict=True) if yes]
            if len(accepted) == len(found):
                break
            refused += [it.grant for it in found if it not in accepted]
        return tuple(accepted)

    async def _is_accepted(
        self, proposal: Proposal, variants: Variants, grant: Grant, admission: Admission
    ) -> bool:
        made = variants.variant(request_for(grant, variants.offers))
        if made is None:
            return False
        _, pod = made
        try:
            admitted = await admission.admit(proposal.namespace, pod)
        except TooManyDryRunsError:
            admitted = None
        if isinstance(admitted, Rejection):
            return False
        return self.decider.fits(replace(proposal, grant=grant, pod=admitted or pod))


def _is_left_alone(proposal: Proposal, admitted: Proposal | Rejection | None) -> bool:
    if not isinstance(admitted, Proposal) or proposal.queue:
        return False  # whether Kueue holds a pod back can be read only of the pod that it has seen
    return not changes(proposal.pod, admitted.pod)


def _fails_for_all(refusal: Refuse) -> bool:
    """Whether a webhook doesn't answer: dry runs don't tell whether it would for another pod."""
    return refusal.rejection is not None and isinstance(refusal.rejection.cause, WebhookFailed)
