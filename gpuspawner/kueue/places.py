"""The place of a workload in its queue, and what the queue's servers and jobs use."""

from collections.abc import Mapping

import msgspec

from gpuspawner.kube.kueue import ClusterQueue, LocalQueue, Workload
from gpuspawner.kube.pods import PodSpec
from gpuspawner.kueue.flavors import matching
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.kueue.quota import QuotaError
from gpuspawner.kueue.workloads import order
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.requests import is_device


class PlaceInQueue(msgspec.Struct, frozen=True):
    """What one who waits in a queue may want to know.

    Attributes:
        queue: The LocalQueue.
        pool: The ClusterQueue, from which the quota comes.
        ahead: How many workloads are ahead; None if the hub may not see them.
        resource: What is short: "nvidia.com/gpu", for example; "" if nobody knows.
        used, nominal: How much of it the ClusterQueue uses, and has of its own, in the flavors that
            the pod may get.
        is_lent: Whether others have borrowed what it doesn't use.
        is_stopped: Whether the queue admits nobody until an administrator lets it.
    """

    queue: str
    pool: str
    ahead: int | None
    resource: str = ""
    used: int = 0
    nominal: int = 0
    is_lent: bool = False
    is_stopped: bool = False


def line(
    objects: KueueObjects, queue: str, pool: ClusterQueue, pod: PodSpec, requests: Mapping[str, int]
) -> PlaceInQueue:
    """Return what a pod would wait for that Kueue doesn't know yet; all who wait are ahead."""
    ahead = objects.waiting_for(pool.metadata.name) if objects.knows_workloads else None
    return PlaceInQueue(queue, pool.metadata.name, ahead, *_use(objects, pool, pod, requests))


def line_of(
    objects: KueueObjects, workload: Workload, pod: PodSpec, requests: Mapping[str, int]
) -> PlaceInQueue | None:
    """Return what the workload of a pod waits for; None if its queue doesn't exist."""
    local = objects.local_queue(workload.metadata.namespace, workload.spec.queue_name)
    pool = objects.cluster_queue(local.spec.cluster_queue) if local else None
    if local is None or pool is None:
        return None
    ahead = None
    if objects.knows_workloads:
        ahead = objects.waiting_for(pool.metadata.name, order(workload))
    queue = workload.spec.queue_name
    used = _use(objects, pool, pod, requests)
    stopped = is_stopped(local, pool) or bool(inactive(pool))
    return PlaceInQueue(queue, pool.metadata.name, ahead, *used, stopped)


def is_stopped(local: LocalQueue, pool: ClusterQueue) -> bool:
    """Whether a queue or its quota is stopped."""
    return any((it or "None") != "None" for it in (local.spec.stop_policy, pool.spec.stop_policy))


def inactive(pool: ClusterQueue) -> str:
    """Return why Kueue says that a ClusterQueue admits nobody; "" if it doesn't.

    A flavor or an admission check is missing, for example (``inactiveReason`` in
    ``pkg/cache/scheduler/clusterqueue.go`` of Kueue 0.15.0).
    """
    conditions = pool.status.conditions or ()
    found = next((it for it in conditions if it.type == "Active" and it.status == "False"), None)
    return (found.message or found.reason or "it isn't active") if found else ""


def _use(
    objects: KueueObjects, pool: ClusterQueue, pod: PodSpec, requests: Mapping[str, int]
) -> tuple[str, int, int, bool]:
    """Return the resource to tell of, and how much of it is used, nominal, and lent or not.

    Only the flavors count that the pod may get.
    """
    try:
        node, flavors = objects.pool(pool.metadata.name), _flavors(objects, pool, pod)
    except (QuotaError, SelectorError):
        return "", 0, 0, False
    own = {key: quota.nominal for key, quota in node.quotas.items() if key[0] in flavors}
    asked = [it for it in requests if requests[it] and any(key[1] == it for key in own)]
    if not asked:
        return "", 0, 0, False
    resource = min(asked, key=lambda it: (not is_device(it), it))
    keys = [key for key in own if key[1] == resource]
    used = sum(node.usage[key] for key in keys)
    unused = max(own[key] - node.usage[key] for key in keys)
    left = max(node.available(key) for key in keys)
    is_lent = left < requests[resource] <= unused
    return resource, used, sum(own[key] for key in keys), is_lent


def _flavors(objects: KueueObjects, pool: ClusterQueue, pod: PodSpec) -> set[str]:
    groups = pool.spec.resource_groups or ()
    return {it.metadata.name for group in groups for it in matching(pod, group, objects)}
