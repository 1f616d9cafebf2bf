"""What the hub sees of a pod that Kueue holds back: its place, and why it may wait in vain."""

from msgspec.structs import replace

from gpuspawner.kube.pods import PodSpec
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.kueue.places import line_of
from gpuspawner.kueue.workloads import hopeless, is_checked
from gpuspawner.launch.sight import Seen
from gpuspawner.launch.trouble import Kind, Trouble
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.scheduling.requests import Amounts, pod_requests
from gpuspawner.scheduling.rules import Rules


class QueueSight:
    """Looks for the workload that Kueue has made of a pod."""

    def __init__(self, objects: KueueObjects, proposal: Proposal, rules: Rules) -> None:
        self._objects = objects
        self._pod = proposal.decoded.spec if proposal.decoded else PodSpec()
        self._requests = _requests(proposal, rules)

    def look(self, seen: Seen) -> Seen:
        """Add to what is seen of a start what Kueue says of it, while it waits for quota."""
        if not seen.is_queued or not seen.uid:
            return seen
        workload = self._objects.workload_of(seen.uid)
        if workload is None:
            is_silent = self._objects.sees_all_workloads()
            silence = (Trouble(Kind.QUEUE_SILENT),) if is_silent else ()
            return replace(seen, troubles=(*seen.troubles, *silence))
        if said := hopeless(workload, self._objects.groups_of(workload)):
            never = Trouble(Kind.QUEUE_NEVER, is_final=True, texts=(said,))
            return replace(seen, troubles=(never, *seen.troubles))
        if is_checked(workload):
            return seen
        return replace(seen, line=line_of(self._objects, workload, self._pod, self._requests))


def _requests(proposal: Proposal, rules: Rules) -> Amounts:
    try:
        return pod_requests(proposal.decoded, rules) if proposal.decoded else {}
    except QuantityError:
        return {}
