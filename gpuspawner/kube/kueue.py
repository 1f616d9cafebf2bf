"""Kueue's objects, with the workloads that wait for quota, and what a pod says to Kueue.

The objects are those of ``kueue.x-k8s.io/v1beta2`` (``apis/kueue/v1beta2`` of v0.15.0), and of
v1beta1, where a few fields of a ClusterQueue differ.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from .meta import BareMeta, Condition, KubeStruct, Quantity, moment
from .pods import Named, Pod, Toleration


class QueueMeta(BareMeta, frozen=True):
    """The metadata of Kueue's objects; the generation changes with the specification."""

    creation_timestamp: str | None = None
    generation: int = 0


class ResourceQuota(KubeStruct, frozen=True):
    """How much of a resource there is in a flavor, and how much may be borrowed and lent."""

    name: str = ""
    nominal_quota: Quantity = 0
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(KubeStruct, frozen=True):
    """The quotas in one flavor."""

    name: str = ""
    resources: list[ResourceQuota] | None = None


class ResourceGroup(KubeStruct, frozen=True):
    """Resources that a workload gets together, from the first flavor that has all of them."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


class ResourceUsage(KubeStruct, frozen=True):
    """How much of a resource is reserved."""

    name: str = ""
    total: Quantity = 0


class FlavorUsage(KubeStruct, frozen=True):
    """How much is reserved in one flavor."""

    name: str = ""
    resources: list[ResourceUsage] | None = None


class ClusterQueueSpec(KubeStruct, frozen=True):
    """The quotas of a ClusterQueue.

    v1beta1 calls the cohort's name ``cohort``, and may list admission checks by name alone.
    """

    resource_groups: list[ResourceGroup] | None = None
    cohort_name: str = ""
    cohort: str = ""
    admission_checks: list[str] | None = None
    admission_checks_strategy: dict[str, object] | None = None
    stop_policy: str | None = None


class ClusterQueueStatus(KubeStruct, frozen=True):
    """What is reserved in a ClusterQueue, and whether it admits workloads."""

    flavors_reservation: list[FlavorUsage] | None = None
    conditions: list[Condition] | None = None


class ClusterQueue(KubeStruct, frozen=True):
    """A pool of quotas."""

    metadata: QueueMeta = QueueMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class CohortSpec(KubeStruct, frozen=True):
    """A cohort's own quotas, and the cohort above it."""

    parent_name: str = ""
    resource_groups: list[ResourceGroup] | None = None


class Cohort(KubeStruct, frozen=True):
    """ClusterQueues and cohorts that lend each other what they don't use."""

    metadata: QueueMeta = QueueMeta()
    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(KubeStruct, frozen=True):
    """Which ClusterQueue gives a LocalQueue its quota."""

    cluster_queue: str = ""
    stop_policy: str | None = None


class LocalQueueStatus(KubeStruct, frozen=True):
    """Whether a LocalQueue can pass workloads on."""

    conditions: list[Condition] | None = None


class LocalQueue(KubeStruct, frozen=True):
    """The queue that pods of a namespace name."""

    metadata: QueueMeta = QueueMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()


class ResourceFlavorSpec(KubeStruct, frozen=True):
    """What Kueue adds to pods that get this flavor, besides labels."""

    tolerations: list[Toleration] | None = None


class ResourceFlavor(KubeStruct, frozen=True):
    """A kind of nodes."""

    metadata: QueueMeta = QueueMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadSpec(KubeStruct, frozen=True):
    """What decides about a workload's place."""

    queue_name: str = ""
    priority: int | None = None
    active: bool | None = None


class WorkloadStatus(KubeStruct, frozen=True):
    """How far a workload is."""

    conditions: list[Condition] | None = None


class Workload(KubeStruct, frozen=True):
    """A pod, or several, for which Kueue reserves quota."""

    metadata: QueueMeta = QueueMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


# What a workload says of itself.

Order = tuple[int, datetime, str]
"""What Kueue sorts workloads by: the first one in a queue is the smallest."""
_LAST = datetime.max.replace(tzinfo=UTC)


def order(workload: Workload) -> Order:
    """Return what Kueue sorts by (``queueOrderingFunc`` in ``pkg/cache/queue/cluster_queue.go``).

    Some evicted workloads count from their eviction; fair sharing between LocalQueues isn't read.
    """
    created = moment(workload.metadata.creation_timestamp) or _LAST
    return -(workload.spec.priority or 0), created, workload.metadata.uid


_NOT_AGAIN = ("Preempted", "NodeFailures")
"""Reasons of evictions after which Kueue may leave a workload out of its queue for good."""


def is_waiting(workload: Workload) -> bool:
    """Whether a workload waits for quota."""
    has_left = holds(workload, "QuotaReserved") or workload.metadata.deletion_timestamp
    return not has_left and not is_over(workload)


def is_over(workload: Workload) -> bool:
    """Whether Kueue never looks at a workload again, unless a person activates it.

    From 0.19 on, it doesn't queue the workload of a single pod again after these evictions: it
    takes for granted that the pod ends too (``SkipReassignmentForPodOwnedWorkloads`` in
    ``pkg/controller/jobframework/reconciler.go`` of 0.19.2). After others it does so itself, later.
    """
    again = condition(workload, "Requeued")
    is_left = again is not None and again.status == "False" and again.reason in _NOT_AGAIN
    return is_left or workload.spec.active is False or holds(workload, "Finished")


def condition(of: Workload | LocalQueue | ClusterQueue, type_: str) -> Condition | None:
    """Return a condition of one of Kueue's objects; None if it has none of this type."""
    return next((it for it in of.status.conditions or () if it.type == type_), None)


def holds(workload: Workload, type_: str) -> bool:
    """Whether a condition of a workload is true."""
    found = condition(workload, type_)
    return found is not None and found.status == "True"


_PREFIX = "kueue.x-k8s.io/"
QUEUE = f"{_PREFIX}queue-name"
PRIORITY = f"{_PREFIX}priority-class"
MANAGED = f"{_PREFIX}managed"
"""Labels (``pkg/controller/constants`` and ``pkg/constants`` of Kueue 0.15). Kueue itself writes
the last one, into each pod that it holds back."""
ADMISSION = f"{_PREFIX}admission"
"""The gate of a pod that waits for quota. Kueue takes its other gates away at the same time, unless
it uses topologies."""


def queue_of(pod: Pod) -> str:
    """Return the name of the LocalQueue that a pod names; "" if it names none."""
    return (pod.metadata.labels or {}).get(QUEUE, "")


def is_gated(gates: Iterable[Named] | None) -> bool:
    """Whether Kueue holds a pod with these gates back until there is quota for it."""
    return any(it.name == ADMISSION for it in gates or ())


def without_gates(pod: Pod) -> Pod:
    """Return a pod as kube-scheduler gets to see it: Kueue takes its own gates away first."""
    gates = pod.spec.scheduling_gates
    if not gates or not is_gated(gates):
        return pod
    others = [it for it in gates if not it.name.startswith(_PREFIX)]
    return pod.with_spec(scheduling_gates=others or None)


def tolerating(pod: Pod, flavors: Iterable[ResourceFlavor]) -> Pod:
    """Return a pod with the tolerations that Kueue adds when it admits it with these flavors.

    ``podset.FromAssignment`` and ``Merge`` (``pkg/podset/podset.go`` of Kueue 0.15.0).
    """
    tolerations = list(pod.spec.tolerations or ())
    for it in flavors:
        tolerations += [one for one in it.spec.tolerations or () if one not in tolerations]
    return pod.with_spec(tolerations=tolerations or None)
