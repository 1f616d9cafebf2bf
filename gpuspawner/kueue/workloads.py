"""What Kueue says of a workload: its place in its queue, what is short, and what others use."""

import re
from collections.abc import Mapping
from contextlib import suppress

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.kube.kueue import (
    ClusterQueue,
    LocalQueue,
    Order,
    Workload,
    condition,
    holds,
    is_over,
    order,
)
from gpuspawner.kube.meta import Condition
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.queue_capacity import amount, quotas
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.scheduling.requests import is_device
from gpuspawner.troubles.pod_troubles import of_eviction
from gpuspawner.troubles.trouble import Kind, Trouble

_NEVER = (
    "unavailable in ClusterQueue",
    "namespace doesn't match ClusterQueue selector",
    "KueueDRAIntegration feature",  # it is off, or knows no claims made by hand
)
_LATER = ("insufficient unused quota", "preemption")
_SHORT = re.compile(r"insufficient unused quota for (\S+) in flavor ([^\s,]+)")
_EXCLUDED = (
    re.compile(r"insufficient quota for \S+ in flavor ([^\s,]+), [^,]* > maximum capacity"),
    re.compile(r"untolerated taint \{[^}]{0,1000}\} in flavor ([^\s,]+)"),
    re.compile(r"flavor (\S+) doesn't match node affinity"),
)
"""What Kueue says of a flavor that it can never give the pod."""
_PUT_AWAY = Condition(message="The workload isn't active")


def is_checked(workload: Workload) -> bool:
    """Whether a workload has quota already, and waits for admission checks."""
    return holds(workload, "QuotaReserved") and not holds(workload, "Admitted")


def short(workload: Workload) -> tuple[str, frozenset[str]]:
    """Return a resource of which Kueue says that too little is left, and in which flavors.

    Devices come first. The resource is "" if Kueue doesn't say so.
    """
    found = _SHORT.findall(_refusal(workload))
    resource = min((it for it, _ in found), key=devices_first, default="")
    return resource, frozenset(flavor for it, flavor in found if it == resource)


def hopeless(objects: KueueObjects, workload: Workload) -> str:
    """Return why Kueue says that a workload can never be admitted; "" if it doesn't.

    The texts are those of ``flavorassigner.go`` and ``scheduler.go``, which are the same in Kueue
    0.15.0 and 0.19.2. After an attempt that failed, Kueue may begin with the next flavor
    (``NextFlavorToTryForPodSetResource`` in ``pkg/workload/workload.go``), and says nothing of the
    first ones then. So the text counts only if it excludes all flavors of a group.
    """
    said = _refusal(workload)
    if any(it in said for it in _LATER):
        return ""
    excluded = {flavor for pattern in _EXCLUDED for flavor in pattern.findall(said)}
    _, pool = _queues(objects, workload)
    groups = (pool.spec.resource_groups if pool else None) or ()
    flavors = [{it.name for it in group.flavors or ()} for group in groups]
    is_never = any(it in said for it in _NEVER) or any(it and it <= excluded for it in flavors)
    return said if is_never else ""


def vain(objects: KueueObjects, workload: Workload) -> Trouble | None:
    """Return what ends the wait of a pod that Kueue holds back; None if its turn may come.

    If an admission check rejects it (a ProvisioningRequest that fails, for example), or somebody
    deactivates it, Kueue leaves its pod gated: ``Stop`` in ``pkg/controller/jobs/pod`` passes pods
    that haven't begun, from 0.9.0 to 0.19.2. The same holds if a workload has ended before its pod,
    or loses its quota while a check runs.
    """
    if is_over(workload):
        told = filter(None, (condition(workload, it) for it in ("Finished", "Evicted")))
        last = next((it for it in told if it.message), _PUT_AWAY)
        is_put_away = workload.spec.active is False  # whatever it was evicted for before
        kind = Kind.QUEUE_EVICTED if is_put_away else of_eviction(last.reason, last.message)
        return Trouble(kind, is_final=True, texts=(last.message,))
    said = hopeless(objects, workload)
    return Trouble(Kind.QUEUE_NEVER, is_final=True, texts=(said,)) if said else None


def devices_first(resource: str) -> tuple[bool, str]:
    """Return what to sort resources by: devices are what people wait for."""
    return not is_device(resource), resource


def _refusal(workload: Workload) -> str:
    """Return why Kueue hasn't reserved quota; "" if it has, or hasn't tried yet."""
    found = condition(workload, "QuotaReserved")
    return found.message if found and found.status == "False" else ""


def place_in_queue(
    objects: KueueObjects, workload: Workload, requests: Mapping[str, int]
) -> PlaceInQueue | None:
    """Return what the workload of a pod waits for; None if its queue doesn't exist.

    Args:
        objects: Kueue's.
        workload: As Kueue has left it.
        requests: What the pod requests: millicores of CPU, and whole units of everything else.
    """
    local, pool = _queues(objects, workload)
    if local is None or pool is None:
        return None
    return PlaceInQueue(
        workload.spec.queue_name,
        pool.metadata.name,
        ahead(objects, pool, order(workload)),
        *_use(pool, workload, requests),
        is_stopped(local, pool) or bool(inactive(pool)),
    )


def _queues(
    objects: KueueObjects, workload: Workload
) -> tuple[LocalQueue | None, ClusterQueue | None]:
    local = objects.find(LocalQueue, workload.spec.queue_name, workload.metadata.namespace)
    return local, objects.find(ClusterQueue, local.spec.cluster_queue) if local else None


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
    found = condition(pool, "Active")
    if found is None or found.status != "False":
        return ""
    return found.message or found.reason or "it isn't active"


def _use(
    pool: ClusterQueue, workload: Workload, requests: Mapping[str, int]
) -> tuple[str, int, int, bool]:
    """Return what Kueue says is short, and how much of it is used, nominal, and lent or not."""
    resource, flavors = short(workload)
    with suppress(QuantityError):
        nominal, used = _nominal(pool, resource), _used(pool, resource)
        if told := flavors & nominal.keys():
            unused = max(nominal[it] - used.get(it, 0) for it in told)
            # Its own quota would do, but isn't there.
            is_lent = 0 < requests.get(resource, 0) <= unused
            taken, own = (sum(of.get(it, 0) for it in told) for of in (used, nominal))
            return resource, taken, own, is_lent
    return "", 0, 0, False


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
