"""What a workload says of its place in a queue."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from gpuspawner.kube.kueue import ResourceGroup, Workload
from gpuspawner.kube.meta import Condition, moment

Order = tuple[int, datetime, str]
"""What Kueue sorts workloads by: the first one in a queue is the smallest."""

_NEVER = ("unavailable in ClusterQueue", "namespace doesn't match ClusterQueue selector")
_TOO_MUCH = re.compile(r"insufficient quota for (\S+) in flavor \S+, [^,]* > maximum capacity")
_FLAVOR = re.compile(r"\bflavor ([^\s,]+)")
_LATER = ("insufficient unused quota", "preemption")
_LAST = datetime.max.replace(tzinfo=UTC)


def order(workload: Workload) -> Order:
    """Return what Kueue sorts by (``queueOrderingFunc`` in ``pkg/cache/queue/cluster_queue.go``).

    Some evicted workloads count from their eviction; fair sharing between LocalQueues isn't read.
    """
    created = moment(workload.metadata.creation_timestamp) or _LAST
    return -(workload.spec.priority or 0), created, workload.metadata.uid


def is_waiting(workload: Workload) -> bool:
    """Whether a workload waits for quota."""
    has_left = _holds(workload, "QuotaReserved") or _holds(workload, "Finished")
    is_alive = workload.spec.active is not False and not workload.metadata.deletion_timestamp
    return is_alive and not has_left


def is_checked(workload: Workload) -> bool:
    """Whether a workload has quota already, and waits for admission checks."""
    return _holds(workload, "QuotaReserved") and not _holds(workload, "Admitted")


def hopeless(workload: Workload, groups: Sequence[ResourceGroup]) -> str:
    """Return why Kueue says that a workload can never be admitted; "" if it doesn't.

    The texts are those of ``flavorassigner.go`` and ``scheduler.go`` of Kueue 0.15.0. After an
    attempt that failed, Kueue may begin with the next flavor (``NextFlavorToTryForPodSetResource``
    in ``pkg/workload/workload.go``), and says nothing of the first ones then. So the text counts
    only if it names all flavors of the resource.

    Args:
        workload: As Kueue has left it.
        groups: The resources and flavors of its ClusterQueue.
    """
    found = _condition(workload, "QuotaReserved")
    said = found.message if found and found.status == "False" else ""
    if any(it in said for it in _LATER):
        return ""
    is_never = any(it in said for it in _NEVER) or _is_too_much(said, groups)
    return said if is_never else ""


def _is_too_much(said: str, groups: Sequence[ResourceGroup]) -> bool:
    """Whether a text says that no flavor could ever give enough of a resource."""
    found = _TOO_MUCH.search(said)
    named = set(_FLAVOR.findall(said))
    return found is not None and any(
        {it.name for it in group.flavors or ()} <= named
        for group in groups
        if found[1] in (group.covered_resources or ())
    )


def _condition(workload: Workload, type_: str) -> Condition | None:
    found = (it for it in workload.status.conditions or () if it.type == type_)
    return next(found, None)


def _holds(workload: Workload, type_: str) -> bool:
    found = _condition(workload, type_)
    return found is not None and found.status == "True"
