"""Asks Kueue's quotas about pods that wait in its queues; the nodes come second."""

from collections.abc import Sequence

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.judging import Free, Full, QuotaAnswer, Unsure, judge
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.preflight.decision import Decision, InQueue, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.scheduling.requests import pod_requests
from gpuspawner.scheduling.state import ClusterState

_OTHER_FLAVOR = "Kueue may choose another flavor, whose nodes have no room"


class Queues:
    """Kueue's quotas at one moment."""

    def __init__(self, objects: KueueObjects, state: ClusterState) -> None:
        self._objects = objects
        self._state = state

    def ask(self, proposal: Proposal, pod: Pod) -> QuotaAnswer | None:
        """Return what Kueue would do with a pod; None if the pod isn't Kueue's."""
        if not (queue := proposal.queue):
            return None
        try:
            requests = pod_requests(pod, self._state.rules)
        except QuantityError as error:
            return Unsure(f"the pod's requests can't be read: {error}")
        return judge(self._objects, queue, pod, requests)


def in_queue(answer: Free | Full, found: Sequence[Decision]) -> Decision:
    """Return the decision about a pod that has quota, or waits for it.

    Args:
        answer: Kueue's.
        found: What the nodes of each of the flavors say.
    """
    first = found[0]
    if isinstance(answer, Full):
        is_impossible = not answer.doubt and all(
            isinstance(it, Refuse) and it.reason is Reason.IMPOSSIBLE for it in found
        )
        return first if is_impossible else Start(first.grant, (InQueue(answer.line),))
    if not isinstance(first, Refuse):
        return first
    others_say_yes = any(not isinstance(it, Refuse) for it in found[1:])
    doubt = _OTHER_FLAVOR if others_say_yes else answer.doubt
    return Start(first.grant, (UnknownRules((doubt,)),)) if doubt else first
