"""Whether a node comes for a pod that waits for one, perhaps behind a queue of Kueue."""

import math
import time
from collections.abc import Callable, Sequence

from gpuspawner.cluster.health import ContactClock
from gpuspawner.cluster.pod_events import Heard
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.kueue import is_gated
from gpuspawner.kube.pods import Pod
from gpuspawner.launch.unscheduled import LOOK_EVERY, Check, WhyUnscheduled, bound, pending
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.pending_pods import is_unschedulable
from gpuspawner.runtime import Runtime
from gpuspawner.scaling.autoscaler_events import Coming, Refused, answer, lacks_volume
from gpuspawner.scaling.cloud_errors import launch_failure
from gpuspawner.scaling.outlook import CanScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.scaling.starting_nodes import age
from gpuspawner.scaling.usual_times import TRIAL_SECONDS, longest_wait
from gpuspawner.scheduling.verdicts import Subject

# If a NodeClaim goes earlier, the cloud had no machine for it (pkg/controllers/nodeclaim/lifecycle,
# launch.go, of Karpenter 1.14.1).
_LAUNCH_SECONDS = 300.0

LASTING_SECONDS = 10.0
"""How long all pools must have ended. A node that has just joined isn't always seen in one moment
with its devices and its labels."""


class NodeAfterQueue:
    """Whether a node comes for a pod that needs one, once Kueue has admitted the pod.

    Only an admitted pod says to which nodes Kueue sends it.
    """

    def __init__(
        self,
        view: ClusterView,
        check: Check,
        proposal: Proposal,
        awaited: Callable[[Proposal, Wait], WhyUnscheduled],
    ) -> None:
        self._view = view
        self._check = check
        self._proposal = proposal
        self._awaited = awaited
        self._looked_at = -math.inf
        self._node: WhyUnscheduled | None = None

    def look(self) -> Refuse | None:
        """As `AwaitedNode.look`."""
        now = time.monotonic()
        is_due = self._node is None and now - self._looked_at >= LOOK_EVERY
        pod = pending(self._view, self._proposal) if is_due else None
        if pod is not None and not is_gated(pod.spec.scheduling_gates):
            self._looked_at = now
            admitted = self._proposal.created(pod)
            decision = self._check(admitted)
            # If not, it may need one later: when others have ended, or have taken its room.
            if isinstance(decision, Wait):
                self._node = self._awaited(admitted, decision)
        return self._node() if self._node else None


class AwaitedNode:
    """Whether the node comes for which a pod waits.

    A wait ends with the autoscaler's own no, with the end of every pool that would help, or when
    its time is up. That answer is remembered for pods of the same kind, unless the autoscaler
    hasn't looked in the meantime. While a volume of the pod is made, no answer counts.

    Args:
        heard: The pod's events, in which autoscalers answer.
        trial: How many seconds the pod may be pending before an autoscaler has reacted to it.
        most: After so many seconds, the wait ends because of the hub's own timeout. This says
            nothing about other pods.
    """

    def __init__(
        self,
        runtime: Runtime,
        heard: Heard,
        proposal: Proposal,
        wait: Wait,
        trial: float,
        most: float,
    ) -> None:
        self._view = runtime.view
        self._to_come = runtime.preflight.to_come
        self._check = runtime.preflight.decider.check_sent
        self._waits_for_a_claim = runtime.preflight.decider.waits_for_a_claim
        self._turns = runtime.turns
        self._heard = heard
        self._proposal = proposal
        self._wait = wait
        self._contact = ContactClock(self._view.lost_contact)
        self._clock = _WaitClock(self._contact, wait, trial, most, self._to_come.pools.looks)
        self._since = time.monotonic()
        self._is_there = False

    def look(self) -> Refuse | None:
        """Return why no node comes for the pod, if none does; once it has a node, never."""
        self._contact.tick()
        if self._is_there or self._has_node():
            self._turns.leave(self)
            return None
        if self._clock.is_cut_off():
            return self._too_late()
        pod = pending(self._view, self._proposal)
        if pod is None or not self._turns.is_turn_of(self):
            return None
        sent = Subject(pod, self._proposal.new_claims)
        subjects = [it for it in (self._proposal.subject, sent) if isinstance(it, Subject)]
        for event in self._heard.take(pod.metadata.uid):
            self._hear(event)
        said = self._clock.take_refusals()
        with self._turns.taken_by(self):
            if self._waits_for_a_claim(sent) or _lacks_volume(pod):
                # Neither a no nor silence is about nodes: the claim keeps the pod off all of them.
                self._clock.begin_trial(self._to_come.pools.looks)
                subjects = []
            for subject in subjects:
                for source, why in said:
                    self._to_come.remember(subject, source, why)
            decision = self._check(self._proposal)
            if said and isinstance(decision, Refuse):
                return decision
            return self._judge(decision, subjects)

    def _has_node(self) -> bool:
        """Whether the pod is on a node by now; notes how long that took."""
        pod = bound(self._view, self._proposal)
        self._is_there = pod is not None
        if pod is not None:
            self._measure(pod.node)
        return self._is_there

    def _too_late(self) -> Refuse:
        return Refuse(self._proposal.grant, Reason.BUSY, obstacles=(self._clock.why(),))

    def _hear(self, event: Event) -> None:
        clock = self._clock
        match answer(event):
            case Coming() as coming:
                clock.is_coming(coming)
                if coming.source is Source.KARPENTER:
                    self._to_come.pools.nominated_at = time.monotonic()
            case Refused(source, said) as no if clock.coming_by in (None, source):
                is_early = no.is_of_round and self._is_one_of_several()
                clock.is_refused(source, self._why(source, said), is_early=is_early)
            case Obstacle() as failed:
                clock.failed = failed

    def _is_one_of_several(self) -> bool:
        """Whether other pods need nodes, too; not those that gates hold back, for example."""
        pods, own = self._view.state.unbound_pods.items(), "/".join(self._proposal.key)
        return any(key != own and is_unschedulable(pod) for key, pod in pods)

    def _why(self, source: Source, said: Obstacle) -> Obstacle:
        """Return why an autoscaler adds no node, also if it tried, and that failed.

        Cluster Autoscaler then says no more than that it backs off, and Karpenter leaves out the
        pools for which the cloud had no machine.
        """
        clock, is_karpenter = self._clock, source is Source.KARPENTER
        if is_karpenter and clock.claim and self._to_come.pools.has_lost(clock.claim):
            return clock.failed or Obstacle(clock.why_lost(), detail=said.detail)
        return clock.failed or said if said.why is WhyNoNode.STOCK_OUT else said

    def _judge(self, decision: Decision, subjects: Sequence[Subject]) -> Refuse | None:
        """Return a refusal if the wait is in vain, though no autoscaler has just said no."""
        clock = self._clock
        if claim := self._to_come.pools.claim(clock.claim):
            clock.failed = launch_failure(claim)
        if isinstance(decision, Refuse) and not _is_taken(decision) and not clock.coming_by:
            return decision if clock.lose_hope() >= LASTING_SECONDS else None
        clock.regain_hope()
        if not clock.is_over():
            return None
        looks = clock.looked(self._to_come.pools.looks)
        # If the hub may not read events, silence says nothing.
        is_silent = self._heard.is_heard and not self._to_come.pools.may_come_untold
        may_come = _comes(decision) or not is_silent or clock.is_early(looks)
        if isinstance(decision, Start) or (may_come and not clock.is_at_end()):
            clock.go_on()
            return None
        if clock.was_unseen(looks):
            return self._too_late()
        for subject in subjects:
            self._to_come.remember(subject, None, clock.why())
        decision = self._check(self._proposal)
        return decision if isinstance(decision, Refuse) else None

    def _measure(self, name: str) -> None:
        """Note how long the node of this name took, if it is a new one."""
        node, seconds = self._view.state.nodes.get(name), time.monotonic() - self._since
        old = age(node) if node else None
        if old is not None and old.total_seconds() < seconds + TRIAL_SECONDS:
            scale_up = self._wait.scale_up
            expected = scale_up.pool if isinstance(scale_up, CanScaleUp) else ""
            for pool in {self._clock.pool or expected, expected}:
                self._to_come.pools.usual.took(pool, seconds)


class _WaitClock:
    """How long one start has waited for a node, and may still wait.

    Attributes:
        pool: The pool that grows for it, if its autoscaler has said so.
        coming_by: The autoscaler that has said last that a node is on its way.
        claim: Karpenter's NodeClaim for that node; "" if there is none.
        failed: Why the last attempt to add a node has failed, if an autoscaler has said so.
    """

    def __init__(
        self, contact: ContactClock, wait: Wait, trial: float, most: float, looks: int | None
    ) -> None:
        self._contact = contact
        self.pool = self.claim = ""
        self._claimed_at = 0.0
        self.coming_by: Source | None = None
        self.failed: Obstacle | None = None
        self._refusals: dict[Source, tuple[float, Obstacle]] = {}
        self._trial = trial
        self._cut = time.monotonic() + most
        self._looks = looks
        self._hopeless_since: float | None = None
        self._is_known = isinstance(wait.scale_up, CanScaleUp)
        self._last = longest_wait(wait.scale_up)
        self._deadline = self._last if self._is_known else trial

    def is_coming(self, coming: Coming) -> None:
        """Note that a node is on its way."""
        self.pool, self.coming_by = coming.pool, coming.source
        self.claim, self._claimed_at, self.failed = coming.claim, self._contact.seconds, None
        self._deadline = self._last
        self._refusals.pop(coming.source, None)

    def is_refused(self, source: Source, why: Obstacle, *, is_early: bool) -> None:
        """Note a no; an early one counts only if no yes comes within a trial of the first."""
        at = self._contact.seconds + (self._trial if is_early else 0.0)
        at = min(at, self._refusals.get(source, (at,))[0])
        self.coming_by, self._refusals[source] = None, (at, why)
        self._deadline = max(self._deadline, at)

    def take_refusals(self) -> list[tuple[Source, Obstacle]]:
        """Return what counts as a no from now on; nothing while another autoscaler's node comes."""
        now = self._contact.seconds if self.coming_by is None else -math.inf
        due = [(source, why) for source, (at, why) in self._refusals.items() if now >= at]
        for source, _ in due:
            del self._refusals[source]
        return due

    def why_lost(self) -> WhyNoNode:
        """Return why the NodeClaim is gone; Karpenter gives a machine that doesn't join 15 min."""
        is_early = self._contact.seconds - self._claimed_at < _LAUNCH_SECONDS
        return WhyNoNode.STOCK_OUT if is_early else WhyNoNode.IN_VAIN

    def go_on(self) -> None:
        """Give the start some more time."""
        self._deadline = self._contact.seconds + self._trial

    def begin_trial(self, looks: int | None) -> None:
        """Give autoscalers a whole trial from now on: none has seen the pod as it will be."""
        self._deadline = max(self._deadline, self._contact.seconds + self._trial)
        self._looks = looks

    def lose_hope(self) -> float:
        """Note that no pool would help any more; return for how many seconds this has been so."""
        now = self._contact.seconds
        self._hopeless_since = now if self._hopeless_since is None else self._hopeless_since
        return now - self._hopeless_since

    def regain_hope(self) -> None:
        """Note that a node has room or can still come, even if an autoscaler has said no."""
        self._hopeless_since = None

    def is_over(self) -> bool:
        """Whether its time is up."""
        return self._contact.seconds >= self._deadline

    def is_at_end(self) -> bool:
        """Whether it may wait no longer for any node."""
        return self._contact.seconds >= self._last

    def looked(self, looks: int | None) -> int | None:
        """Note how often the autoscaler has looked, from the first time that its status tells."""
        self._looks = looks if self._looks is None else self._looks
        return looks

    def is_early(self, looks: int | None) -> bool:
        """Whether the autoscaler may still answer, because it hasn't looked yet; see `Pools.looks`.

        It may have begun the first of these looks before the pod was there.
        """
        return looks is not None and self.was_unseen(looks)

    def was_unseen(self, looks: int | None) -> bool:
        """Whether the autoscaler is known not to have looked while the pod was there."""
        return self._looks is not None and (looks or 0) < self._looks + 2

    def is_cut_off(self) -> bool:
        """Whether the hub is about to give the start up."""
        return time.monotonic() >= self._cut

    def why(self) -> Obstacle:
        """Return why no node came in time."""
        is_in_vain = self._is_known or self.pool or self.coming_by
        silence = Obstacle(WhyNoNode.IN_VAIN if is_in_vain else WhyNoNode.NO_ANSWER)
        said = () if self.coming_by else self._refusals.values()
        return self.failed or next((why for _, why in said), silence)


def _lacks_volume(pod: Pod) -> bool:
    """Whether kube-scheduler says so, which also sees claims that the hub may not read."""
    return is_unschedulable(pod) and any(
        it.type == "PodScheduled" and lacks_volume(it.message) for it in pod.status.conditions or ()
    )


def _is_taken(refusal: Refuse) -> bool:
    """Whether it is only about others who wait: this pod is one of those."""
    return any(it.why is WhyNoNode.TAKEN for it in refusal.obstacles)


def _comes(decision: Decision) -> bool:
    """Whether a node can come, as far as anybody knows by now.

    It can from a pool that an autoscaler lists and may enlarge, also if nobody has seen its nodes.
    """
    if not isinstance(decision, Wait):
        return False
    scale_up = decision.scale_up
    return isinstance(scale_up, CanScaleUp) or scale_up.on_its_way or scale_up.is_listed
