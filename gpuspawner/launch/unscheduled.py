"""Whether a pod that was sent and has no node yet will still get one.

Each class, here and in `awaited_node`, has one question, and none of them waits: `launching` asks
at each change of the live view, and at least each second.
"""

import time
from collections.abc import Callable

from msgspec.structs import replace

from gpuspawner.cluster.pod_events import Heard
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.pods import Pod
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.pending_pods import is_unschedulable
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.node_info import PodInfo
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.host import Host
from gpuspawner.traits import OFF
from gpuspawner.traits.trait_types import setting

# A cluster changes hundreds of times a second, and each verdict about a large one takes long.
LOOK_EVERY = 1.0
# How often in a row a pod must seem to have lost its room: the scheduler may try it again.
_LOOKS = 3

WhyUnscheduled = Callable[[], Refuse | None]
"""Returns why a pod gets no node, if that is known by now."""
Check = Callable[[Proposal], Decision]
"""Decides about a pod that exists, as the view shows it at this moment."""


def question(
    spawner: Host, runtime: Runtime, attempt: Attempt, heard: Heard
) -> WhyUnscheduled | None:
    """Return what is to be asked about the pod of a start, once it exists.

    None if nobody knows whether the pod fits, or if the preflight is off. Nobody else takes what is
    *heard* of the pod.
    """
    check, proposal = runtime.preflight.decider.check_sent, attempt.choice.proposal
    decision = attempt.decision

    def awaited(proposal: Proposal, wait: Wait) -> WhyUnscheduled:
        its = setting(spawner, "trial_timeout"), attempt.seconds_left
        return AwaitedNode(runtime, heard, proposal, wait, *its).look

    if setting(spawner, "preflight") == OFF:
        return None
    if isinstance(decision, Wait) or decision.queue is not None:
        # Most clusters don't grow, and have no queue.
        from gpuspawner.launch.awaited_node import AwaitedNode, NodeAfterQueue

        if isinstance(decision, Wait):
            return awaited(proposal, decision)
        return NodeAfterQueue(runtime.view, check, proposal, awaited).look
    return PromisedRoom(runtime.view, check, proposal).look if attempt.is_promised else None


def pending(view: ClusterView, proposal: Proposal) -> Pod | None:
    """Return the pod without a node; None while nobody is sure what the view shows."""
    return view.state.unbound_pods.get("/".join(proposal.key)) if view.in_touch() else None


def bound(view: ClusterView, proposal: Proposal) -> PodInfo | None:
    """Return the pod once it has a node; an older pod of its name may still be ending there."""
    pod = view.state.pods.get("/".join(proposal.key))
    return None if pod is None or pod.terminating else pod


class PromisedRoom:
    """Whether another pod has taken the room that a pod was promised.

    Another program, or a person with kubectl, may take it. The scheduler's condition alone is no
    proof: the scheduler may have tried the pod a moment too early.
    """

    def __init__(self, view: ClusterView, check: Check, proposal: Proposal) -> None:
        self._view = view
        self._check = check
        self._proposal = proposal
        self._looked_at = time.monotonic()
        self._looks = 0

    def look(self) -> Refuse | None:
        """Return why the pod has lost its room, if each of the last looks has found so."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_EVERY:
            return None
        self._looked_at = now
        refusal = self._taken()
        self._looks = self._looks + 1 if refusal else 0
        return refusal if self._looks >= _LOOKS else None

    def _taken(self) -> Refuse | None:
        """Return why the pending pod has lost its room, if the scheduler and our verdict agree."""
        pod = pending(self._view, self._proposal)
        if pod is None or not is_unschedulable(pod):
            return None
        decision = self._check(self._proposal)
        if not isinstance(decision, Refuse) or not decision.scheduler_message:
            return None  # a node has room, by our verdict
        is_taken = decision.reason is Reason.BUSY and decision.held is None
        return replace(decision, reason=Reason.TAKEN) if is_taken else decision
