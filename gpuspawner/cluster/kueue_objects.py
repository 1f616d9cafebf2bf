"""Kueue's objects, as the live view has read them."""

from bisect import bisect_left, insort

from gpuspawner.kube.kueue import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    Order,
    ResourceFlavor,
    Workload,
    is_waiting,
    order,
)
from gpuspawner.kube.objects import AnyObject, Undecodable
from gpuspawner.kube.store import ObjectStore

DEFAULT_QUEUE = "default"
"""The LocalQueue of pods that name none (``pkg/controller/constants`` of Kueue 0.15)."""
_QUOTAS = (LocalQueue, ClusterQueue, Cohort, ResourceFlavor)


class KueueObjects(ObjectStore):
    """The objects of Kueue."""

    def __init__(self) -> None:
        super().__init__()
        self._by_pod: dict[str, Workload] = {}
        self._waiting: dict[tuple[str, str], list[Order]] = {}

    def put(self, thing: AnyObject | Undecodable) -> None:
        """As `ObjectStore.put`; the lines of workloads are kept in order."""
        if isinstance(thing, Undecodable) and thing.kind == Workload.__name__:
            self._take_out(thing.namespace, thing.name)
        if isinstance(thing, Workload):
            self._take_out(thing.metadata.namespace, thing.metadata.name)
            for owner in thing.metadata.owner_references or ():
                self._by_pod[owner.uid] = thing
            if is_waiting(thing):
                insort(self._waiting.setdefault(_queue(thing), []), order(thing))
        super().put(thing)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """As `ObjectStore.remove`."""
        if kind == Workload.__name__:
            self._take_out(namespace, name)
        super().remove(kind, namespace, name)

    def _take_out(self, namespace: str, name: str) -> None:
        known = self.find(Workload, name, namespace)
        if known is None:
            return
        for owner in known.metadata.owner_references or ():
            if self._by_pod.get(owner.uid) is known:
                del self._by_pod[owner.uid]
        if is_waiting(known):
            queue, place = _queue(known), order(known)
            line = self._waiting[queue]
            del line[bisect_left(line, place)]
            if not line:  # anybody may name queues that nobody has made
                del self._waiting[queue]

    def waiting_for(self, pool: str, before: Order | None = None) -> int:
        """Return how many workloads wait for a ClusterQueue, or how many of them before a place."""
        lines = [line for queue, line in self._waiting.items() if self._leads_to(pool, queue)]
        return sum(len(it) if before is None else bisect_left(it, before) for it in lines)

    def _leads_to(self, pool: str, queue: tuple[str, str]) -> bool:
        namespace, name = queue
        local = self.find(LocalQueue, name, namespace)
        return local is not None and local.spec.cluster_queue == pool

    @property
    def knows_quotas(self) -> bool:
        """Whether every object is known and readable that decides about quotas."""
        kinds = [it.__name__ for it in _QUOTAS]
        return all(self.known(it) and not self.unreadable(it) for it in kinds)

    @property
    def knows_workloads(self) -> bool:
        """Whether all workloads are known."""
        return self.known(Workload.__name__)

    def sees_all_workloads(self) -> bool:
        """Whether every workload is known and readable, so that a pod without one has none."""
        return self.knows_workloads and not self.unreadable(Workload.__name__)

    def names_of_queues(self, namespace: str) -> list[str]:
        """Return the names of a namespace's LocalQueues."""
        return [name for place, name in self.keys(LocalQueue.__name__) if place == namespace]

    def workload_of(self, pod_uid: str) -> Workload | None:
        """Return the workload of a pod; None if Kueue has made none, or the hub doesn't see it."""
        return self._by_pod.get(pod_uid)


def _queue(workload: Workload) -> tuple[str, str]:
    return workload.metadata.namespace, workload.spec.queue_name
