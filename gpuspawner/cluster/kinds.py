"""The kinds of objects that the view follows."""

from collections.abc import Iterable
from typing import Self

import msgspec

from gpuspawner.cluster.autoscaler_objects import STATUS


class ObjectKind(msgspec.Struct, frozen=True):
    """A kind of object, and its collection in the API.

    Attributes:
        name: The objects' ``kind``.
        path: The path of the collection in all namespaces.
        field_selector: Selects the objects to follow; "" for all.
        required: Whether every verdict needs this kind.
        absent_is_empty: Whether an API that lacks the collection has no such objects. It may also
            have them in another version, which the view asks for.
    """

    name: str
    path: str
    field_selector: str = ""
    required: bool = True
    absent_is_empty: bool = True

    @property
    def plural(self) -> str:
        """The resource, as RBAC names it."""
        return self.path.rpartition("/")[2]

    @property
    def api(self) -> str:
        """The path of the API that has this kind; "" for the core API, which no server lacks."""
        return "/".join(self.path.split("/")[:4]) if self.path.startswith("/apis/") else ""

    @property
    def group(self) -> str:
        """The path of the API group that has this kind; "" for the core API."""
        return self.api.rpartition("/")[0]

    def of(self, version: str) -> Self:
        """Return the kind in this version of its API group."""
        return msgspec.structs.replace(self, path=f"{self.group}/{version}/{self.plural}")


NODES = ObjectKind("Node", "/api/v1/nodes")
# The same selector as kube-scheduler's (pkg/scheduler/scheduler.go, newPodInformer): a pod that
# ends arrives as DELETED.
PODS = ObjectKind("Pod", "/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed")
_STORAGE = "/apis/storage.k8s.io/v1"
# If the hub may not read one of these, only pods whose placement depends on it become unknown.
_OPTIONAL = {
    "Namespace": "/api/v1/namespaces",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": f"{_STORAGE}/storageclasses",
    "CSINode": f"{_STORAGE}/csinodes",
    "CSIDriver": f"{_STORAGE}/csidrivers",
    "CSIStorageCapacity": f"{_STORAGE}/csistoragecapacities",
    "VolumeAttachment": f"{_STORAGE}/volumeattachments",
    # Needed only if admission hasn't written the priority into the pod: if its dry run failed, say.
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
}
# In version v1 since Kubernetes 1.34. No API server lacks the others: if one of them isn't found,
# it is a proxy that says so, and nothing is known of it.
_MAY_BE_ABSENT = "DeviceClass"
KINDS = (
    NODES,
    PODS,
    *(
        ObjectKind(name, path, required=False, absent_is_empty=name == _MAY_BE_ABSENT)
        for name, path in _OPTIONAL.items()
    ),
)


def _in_any_version(path: str, **plurals: str) -> tuple[ObjectKind, ...]:
    """Return kinds of a program whose API the server may have in another version than *path*."""
    return tuple(
        ObjectKind(name, f"{path}/{plural}", required=False, absent_is_empty=False)
        for name, plural in plurals.items()
    )


KARPENTER_KINDS = _in_any_version(
    "/apis/karpenter.sh/v1", NodePool="nodepools", NodeClaim="nodeclaims"
)
_OPENSHIFT = "/apis/autoscaling.openshift.io"
# They are in different versions of one API group.
MACHINE_KINDS = (
    ObjectKind("ClusterAutoscaler", f"{_OPENSHIFT}/v1/clusterautoscalers", required=False),
    ObjectKind("MachineAutoscaler", f"{_OPENSHIFT}/v1beta1/machineautoscalers", required=False),
)
"""What tells whether Cluster Autoscaler scales machines of OpenShift."""


def status_at(place: str) -> ObjectKind:
    """Return what Cluster Autoscaler says of its node groups: the ConfigMap ``namespace/name``."""
    namespace, _, name = place.partition("/")
    selector = f"metadata.name={name}"
    return ObjectKind(
        "ConfigMap", f"/api/v1/namespaces/{namespace}/configmaps", selector, required=False
    )


def scaling_kinds(place: str) -> tuple[ObjectKind, ...]:
    """Return what tells of nodes that can still come; a cluster may have none of it."""
    return (*KARPENTER_KINDS, *MACHINE_KINDS, status_at(place))


SCALING_KINDS = scaling_kinds("/".join(STATUS))

KUEUE_KINDS = _in_any_version(
    "/apis/kueue.x-k8s.io/v1beta2",
    LocalQueue="localqueues",
    ClusterQueue="clusterqueues",
    Cohort="cohorts",
    ResourceFlavor="resourceflavors",
    Workload="workloads",
)
"""What tells of Kueue's queues and quotas.

Before Kueue 0.13, cohorts are in an older version than the rest (CHANGELOG-0.13.md).
"""


def by_group(kinds: Iterable[ObjectKind]) -> list[list[ObjectKind]]:
    """Return the kinds that may be in another version, those of one API group together."""
    groups: dict[str, list[ObjectKind]] = {}
    for kind in kinds:
        if not kind.absent_is_empty:
            groups.setdefault(kind.group, []).append(kind)
    return list(groups.values())


def servers_of(namespace: str) -> ObjectKind:
    """Return the pods of a namespace, with what tells whose servers they are; "" for all of them.

    A pod that has ended holds nothing, and arrives as DELETED.
    """
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS.path
    return ObjectKind("ServerPod", path, PODS.field_selector)


def pod_events(namespace: str) -> ObjectKind:
    """Return the events of a namespace's pods."""
    path = f"/api/v1/namespaces/{namespace}/events"
    return ObjectKind("Event", path, "involvedObject.kind=Pod", required=False)
