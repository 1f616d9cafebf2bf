"""The place of a workload in its queue, and what the queue's servers and jobs use."""

from collections.abc import Mapping

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.kube.kueue import ClusterQueue, LocalQueue, Order, Workload, order
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.queue_capacity import amount, quotas
from gpuspawner.kueue.workloads import short
from gpuspawner.preflight.kueue import PlaceInQueue


def place_in_queue(
    objects: KueueObjects, workload: Workload, requests: Mapping[str, int]
) -> PlaceInQueue | None:
    """Return what the workload of a pod waits for; None if its queue doesn't exist.

    Args:
        objects: Kueue's.
        workload: As Kueue has left it.
        requests: What the pod requests: millicores of CPU, and whole units of everything else.
    """
    local = objects.find(LocalQueue, workload.spec.queue_name, workload.metadata.namespace)
    pool = objects.find(ClusterQueue, local.spec.cluster_queue) if local else None
    if local is None or pool is None:
        return None
    return PlaceInQueue(
        workload.spec.queue_name,
        pool.metadata.name,
        ahead(objects, pool, order(workload)),
        *_use(pool, workload, requests),
        is_stopped(local, pool) or bool(inactive(pool)),
    )


def ahead(objects: KueueObjects, pool: ClusterQueue, place: Order | None = None) -> int | None:
    """Return how many wait for a ClusterQueue, or before a place in it; None if nobody can tell."""
    return objects.waiting_for(pool.metadata.name, place) if objects.knows_workloads else None


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
    pool: ClusterQueue, workload: Workload, requests: Mapping[str, int]
) -> tuple[str, int, int, bool]:
    """Return what Kueue says is short, and how much of it is used, nominal, and lent or not."""
    resource, flavors = short(workload)
    try:
        nominal = _nominal(pool, resource)
        used = _used(pool, resource)
    except QuantityError:
        return "", 0, 0, False
    told = flavors & nominal.keys()
    if not told:
        return "", 0, 0, False
    unused = max(nominal[it] - used.get(it, 0) for it in told)
    is_lent = 0 < requests.get(resource, 0) <= unused  # its own quota would do, but isn't there
    return resource, sum(used.get(it, 0) for it in told), sum(nominal[it] for it in told), is_lent


def _nominal(pool: ClusterQueue, resource: str) -> dict[str, int]:
    """Return the own quota of a resource by flavor."""
    own = [(flavor, it) for flavor, it in quotas(pool) if it.name == resource]
    return {flavor: amount(resource, it.nominal_quota) for flavor, it in own}


def _used(pool: ClusterQueue, resource: str) -> dict[str, int]:
    """Return what is reserved of a resource by flavor."""
    return {
        flavor.name: amount(resource, it.total)
        for flavor in pool.status.flavors_reservation or ()
        for it in flavor.resources or ()
        if it.name == resource
    }
