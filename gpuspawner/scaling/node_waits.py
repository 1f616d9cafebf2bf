"""Waits for a node that is to come, and ends in a refusal if it doesn't."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from gpuspawner.cluster.pod_events import Heard
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.kueue_pods import is_gated
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start, Wait
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.reservations.in_view import UNSEEN_SECONDS, InView
from gpuspawner.scaling.answers import Coming, Refused, answer
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.scaling.starting import age
from gpuspawner.scheduling.verdicts import Subject

TRIAL_SECONDS = 60.0
"""How long a pod may be pending before an autoscaler has reacted to it."""

# Cluster Autoscaler and Karpenter give a node up after 15 minutes. The usual time is no limit: a
# pod that found a node on its way has waited less than the next one may have to.
LEAST_MINUTES = 20.0

# If a NodeClaim goes earlier, the cloud had no machine for it (pkg/controllers/nodeclaim/lifecycle,
# launch.go, of Karpenter 1.14.1).
_LAUNCH_SECONDS = 300.0

_LOOK_EVERY = 1.0
# In seconds. Longer looks are followed by a rest of nine times their length.
_SHORT_LOOK, _RESTS = 0.005, 9
LASTING_SECONDS = 10.0
"""How long all pools must have ended. A node that has just joined isn't always seen in one moment
with its devices and its labels."""


def longest_wait(scale_up: CanScaleUp | MayScaleUp) -> float:
    """Return how many seconds a start may wait for its node: at least twice the usual time."""
    return 60 * max(LEAST_MINUTES, 2 * (scale_up.minutes or 0)) + TRIAL_SECONDS


class NodeWaits:
    """The starts whose pods wait for a node.

    Args:
        check: Decides about a proposal at this moment.
        trial: As `TRIAL_SECONDS`.
        lasting: As `LASTING_SECONDS`.
        unseen: As `UNSEEN_SECONDS`.
    """

    def __init__(
        self,
        view: ClusterView,
        to_come: NodesToCome,
        check: Callable[[Proposal], Decision],
        trial: float = TRIAL_SECONDS,
        lasting: float = LASTING_SECONDS,
        unseen: float = UNSEEN_SECONDS,
    ) -> None:
        self._view = view
        self._to_come = to_come
        self._check = check
        self._trial = trial
        self._lasting = lasting
        self._unseen = unseen
        self._turns = _Turns()

    async def until_in_vain(self, proposal: Proposal, wait: Wait, most: float = math.inf) -> Refuse:
        """Return why no node comes for the existing pod; if it gets one, wait until it is gone.

        A wait ends with the autoscaler's own no, with the end of every pool that would help, or
        when its time is up. That answer is remembered for pods of the same kind, unless the
        autoscaler hasn't looked in the meantime. It also ends with the pod: others may delete or
        evict it, and the hub's own timeout is long.

        After *most* seconds, it ends because of that timeout. This says nothing about other pods.
        """
        key = "/".join(proposal.key)
        looks = self._to_come.pools.looks
        clock, sight = _Clock(wait, self._trial, most, looks), InView(self._view, key, self._unseen)
        with self._view.events.of(*proposal.key) as heard:
            while not self._has_node(key):
                if clock.is_cut_off():
                    return Refuse(proposal.grant, Reason.BUSY, obstacles=(Obstacle(clock.why()),))
                await self._view.changed(_LOOK_EVERY)
                await self._turns.come()
                if sight.is_lost():
                    return Refuse(proposal.grant, Reason.DELETED)
                pod = self._view.state.unbound_pods.get(key)
                if pod is None or not self._view.in_touch():
                    continue
                subjects = [
                    it for it in (proposal.subject, Subject(pod)) if isinstance(it, Subject)
                ]
                for event in heard.take(pod.metadata.uid):
                    self._hear(event, subjects, clock)
                with self._turns.timed():
                    refusal = self._look(proposal.created(pod), subjects, clock, heard)
                if refusal is not None:
                    return refusal
        self._measure(key, wait, clock)
        while not sight.is_lost():
            await self._view.changed(_LOOK_EVERY)
        return Refuse(proposal.grant, Reason.DELETED)

    async def until_in_vain_after_queue(self, proposal: Proposal, most: float) -> Refuse:
        """As `until_in_vain`, once Kueue has admitted the existing pod.

        Only then the pod says to which nodes Kueue sends it. If it needs no new node, wait forever.
        """
        key = "/".join(proposal.key)
        while not self._has_node(key):
            pod = self._view.state.unbound_pods.get(key)
            if pod is not None and not is_gated(pod):
                admitted = proposal.created(pod)
                decision = self._check(admitted)
                if isinstance(decision, Wait):
                    return await self.until_in_vain(admitted, decision, most)
                break
            await self._view.changed(_LOOK_EVERY)
        return await asyncio.Future()

    def _has_node(self, key: str) -> bool:
        """Whether the pod is on a node; an older pod of its name may still be ending."""
        pod = self._view.state.pods.get(key)
        return pod is not None and not pod.terminating

    def _hear(self, event: Event, subjects: Iterable[Subject], clock: "_Clock") -> None:
        match answer(event):
            case Coming() as coming:
                clock.is_coming(coming)
            case Refused(source, said) if clock.coming_by in (None, source):
                obstacle = self._lost(clock, said) if source is Source.KARPENTER else said
                for subject in subjects:
                    self._to_come.remember(subject, source, obstacle)
                clock.coming_by, clock.was_refused = None, True

    def _lost(self, clock: "_Clock", said: Obstacle) -> Obstacle:
        """Return why Karpenter adds no node, also if the NodeClaim that it had made is gone.

        What it says then leaves out the pools for which the cloud has no machine at the moment.
        """
        is_lost = clock.claim and self._to_come.pools.has_lost(clock.claim)
        return Obstacle(clock.why_lost(), detail=said.detail) if is_lost else said

    def _look(
        self, proposal: Proposal, subjects: Iterable[Subject], clock: "_Clock", heard: Heard
    ) -> Refuse | None:
        """Look once more; return a refusal if the wait is in vain."""
        decision = self._check(proposal)
        if isinstance(decision, Refuse) and clock.was_refused:
            return decision
        if isinstance(decision, Refuse) and not _is_taken(decision) and not clock.coming_by:
            return decision if clock.without_hope() >= self._lasting else None
        clock.has_hope()
        if not clock.is_over():
            return None
        looks = clock.looked(self._to_come.pools.looks)
        # If the hub may not read events, silence says nothing.
        may_come = _comes(decision) or not heard.is_heard or clock.is_early(looks)
        if isinstance(decision, Start) or (may_come and not clock.is_at_end()):
            clock.go_on()
            return None
        if clock.was_unseen(looks):
            return Refuse(proposal.grant, Reason.BUSY, obstacles=(Obstacle(clock.why()),))
        for subject in subjects:
            self._to_come.remember(subject, None, Obstacle(clock.why()))
        decision = self._check(proposal)
        return decision if isinstance(decision, Refuse) else None

    def _measure(self, key: str, wait: Wait, clock: "_Clock") -> None:
        """Note how long the node took, if it is a new one."""
        state, seconds = self._view.state, time.monotonic() - clock.since
        node = state.nodes.get(state.pods[key].node)
        old = age(node) if node else None
        if old is not None and old.total_seconds() < seconds + TRIAL_SECONDS:
            expected = wait.scale_up.pool if isinstance(wait.scale_up, CanScaleUp) else ""
            for pool in {clock.pool or expected, expected}:
                self._to_come.pools.usual.took(pool, seconds)


class _Turns:
    """Spaces the looks of all starts that wait, so that the hub does other work most of the time.

    In a cluster of thousands of nodes that always changes, each look takes a tenth of a second.
    """

    def __init__(self) -> None:
        self._next = 0.0

    async def come(self) -> None:
        """Wait for a turn."""
        while (wait := self._next - time.monotonic()) > 0:  # noqa: ASYNC110, a time has no event
            await asyncio.sleep(wait)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Let the next turn come after a rest that depends on how long this one takes."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        if took > _SHORT_LOOK:
            self._next = time.monotonic() + _RESTS * took


class _Clock:
    """How long one start has waited, and may still wait.

    Attributes:
        pool: The pool that grows for it, if its autoscaler has said so.
        was_refused: Whether an autoscaler has just said that it adds no node.
        coming_by: The autoscaler that has said last that a node is on its way.
        claim: Karpenter's NodeClaim for that node; "" if there is none.
    """

    def __init__(self, wait: Wait, trial: float, most: float, looks: int | None) -> None:
        self.since = time.monotonic()
        self.pool = self.claim = ""
        self._claimed_at = self.since
        self.was_refused = False
        self.coming_by: Source | None = None
        self._trial = trial
        self._cut = self.since + most
        self._looks = looks
        self._hopeless_since: float | None = None
        self._is_known = isinstance(wait.scale_up, CanScaleUp)
        self._last = self.since + longest_wait(wait.scale_up)
        self._deadline = self._last if self._is_known else self.since + trial

    def is_coming(self, coming: Coming) -> None:
        """Note that a node is on its way."""
        self.pool, self.coming_by, self.was_refused = coming.pool, coming.source, False
        self.claim, self._claimed_at = coming.claim, time.monotonic()
        self._deadline = self._last

    def why_lost(self) -> WhyNoNode:
        """Return why the NodeClaim is gone; Karpenter gives a machine that doesn't join 15 min."""
        is_early = time.monotonic() - self._claimed_at < _LAUNCH_SECONDS
        return WhyNoNode.STOCK_OUT if is_early else WhyNoNode.IN_VAIN

    def go_on(self) -> None:
        """Give the start some more time."""
        self._deadline = time.monotonic() + self._trial

    def without_hope(self) -> float:
        """Note that no pool would help any more; return for how many seconds this has been so."""
        now = time.monotonic()
        self._hopeless_since = self._hopeless_since or now
        return now - self._hopeless_since

    def has_hope(self) -> None:
        """Note that a node has room or can still come, even if an autoscaler has said no."""
        self._hopeless_since, self.was_refused = None, False

    def is_over(self) -> bool:
        """Whether its time is up, unless a node is about to be ready."""
        return time.monotonic() >= self._deadline

    def is_at_end(self) -> bool:
        """Whether it may wait no longer for any node."""
        return time.monotonic() >= self._last

    def looked(self, looks: int | None) -> int | None:
        """Note how often the autoscaler has looked, from the first time that its status tells."""
        self._looks = looks if self._looks is None else self._looks
        return looks

    def is_early(self, looks: int | None) -> bool:
        """Whether the autoscaler may still answer, because it hasn't looked yet; see `Pools.looks`.

        It may have begun the first of these looks before the pod was there.
        """
        return None not in (looks, self._looks) and self.was_unseen(looks)

    def was_unseen(self, looks: int | None) -> bool:
        """Whether the autoscaler is known not to have looked while the pod was there."""
        return self._looks is not None and (looks or 0) < self._looks + 2

    def is_cut_off(self) -> bool:
        """Whether the hub is about to give the start up."""
        return time.monotonic() >= self._cut

    def why(self) -> WhyNoNode:
        """Return why no node came in time."""
        return (
            WhyNoNode.IN_VAIN
            if self._is_known or self.pool or self.coming_by
            else WhyNoNode.NO_ANSWER
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
