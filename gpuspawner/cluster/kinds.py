"""The kinds of objects that the view follows."""

import msgspec

from gpuspawner.scaling.objects import STATUS


class Kind(msgspec.Struct, frozen=True):
    """A kind of object, and its collection in the API.

    Attributes:
        name: The objects' ``kind``.
        path: The path of the collection in all namespaces.
        field_selector: Selects the objects to follow; "" for all.
        required: Whether every verdict needs this kind.
        absent_is_empty: Whether an API that lacks the collection has no such objects; it may also
            have them in another version.
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


NODES = Kind("Node", "/api/v1/nodes")
# The same selector as kube-scheduler's (pkg/scheduler/scheduler.go, newPodInformer): a pod that
# ends arrives as DELETED.
PODS = Kind("Pod", "/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed")
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
    # In version v1 since Kubernetes 1.34.
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
}
KINDS = (NODES, PODS, *(Kind(name, path, required=False) for name, path in _OPTIONAL.items()))

KARPENTER_API = "/apis/karpenter.sh"
KARPENTER_KINDS = (
    Kind("NodePool", f"{KARPENTER_API}/v1/nodepools", required=False),
    Kind("NodeClaim", f"{KARPENTER_API}/v1/nodeclaims", required=False),
)
AUTOSCALER_STATUS = Kind(
    "ConfigMap",
    f"/api/v1/namespaces/{STATUS[0]}/configmaps",
    f"metadata.name={STATUS[1]}",
    required=False,
)
"""What Cluster Autoscaler says about its node groups."""
SCALING_KINDS = (*KARPENTER_KINDS, AUTOSCALER_STATUS)
"""What tells of nodes that can still come; a cluster may have none of it."""

KUEUE_API = "/apis/kueue.x-k8s.io"
_QUEUES = {
    "LocalQueue": "localqueues",
    "ClusterQueue": "clusterqueues",
    "Cohort": "cohorts",
    "ResourceFlavor": "resourceflavors",
    "Workload": "workloads",
}
KUEUE_KINDS = tuple(_QUEUES)
"""What tells of Kueue's queues and quotas."""


def kueue_kinds(version: str) -> tuple[Kind, ...]:
    """Return Kueue's kinds in a version of its API.

    Before Kueue 0.13, cohorts are in an older one than the rest (CHANGELOG-0.13.md).
    """
    return tuple(
        Kind(name, f"{KUEUE_API}/{version}/{plural}", required=False, absent_is_empty=False)
        for name, plural in _QUEUES.items()
    )


def servers_of(namespace: str) -> Kind:
    """Return the pods of a namespace, with what tells whose servers they are; "" for all of them.

    A pod that has ended holds nothing, and arrives as DELETED.
    """
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS.path
    return Kind("ServerPod", path, PODS.field_selector)


def pod_events(namespace: str) -> Kind:
    """Return the events of a namespace's pods."""
    path = f"/api/v1/namespaces/{namespace}/events"
    return Kind("Event", path, "involvedObject.kind=Pod", required=False)
