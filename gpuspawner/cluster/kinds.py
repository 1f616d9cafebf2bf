"""Which kinds of objects the view follows. One more kind is one more row."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One collection of the API.

    Attributes:
        name: As in the objects' ``kind``.
        plural: As RBAC names it.
        path: The collection over all namespaces.
        field_selector: Which of them, "" for all.
        required: Whether no verdict is possible without it.
    """

    name: str
    plural: str
    path: str
    field_selector: str = ""
    required: bool = True


NODES = Kind("Node", "nodes", "/api/v1/nodes")
PODS = Kind(
    "Pod",
    "pods",
    "/api/v1/pods",
    # The pods that kube-scheduler itself counts (pkg/scheduler/scheduler.go, newPodInformer): a
    # pod that ends arrives as DELETED.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
_STORAGE = "/apis/storage.k8s.io/v1"
# Without the right to read these only the pods whose placement depends on them become unknown.
_OPTIONAL = (
    Kind("Namespace", "namespaces", "/api/v1/namespaces", required=False),
    Kind(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "/api/v1/persistentvolumeclaims",
        required=False,
    ),
    Kind("PersistentVolume", "persistentvolumes", "/api/v1/persistentvolumes", required=False),
    Kind("StorageClass", "storageclasses", f"{_STORAGE}/storageclasses", required=False),
    Kind("CSINode", "csinodes", f"{_STORAGE}/csinodes", required=False),
    Kind("CSIDriver", "csidrivers", f"{_STORAGE}/csidrivers", required=False),
    Kind(
        "CSIStorageCapacity",
        "csistoragecapacities",
        f"{_STORAGE}/csistoragecapacities",
        required=False,
    ),
    Kind("VolumeAttachment", "volumeattachments", f"{_STORAGE}/volumeattachments", required=False),
    # Only where admission has not written the priority into the pod, as when its dry run failed.
    Kind(
        "PriorityClass",
        "priorityclasses",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        required=False,
    ),
    # Of version v1 since Kubernetes 1.34.
    Kind("DeviceClass", "deviceclasses", "/apis/resource.k8s.io/v1/deviceclasses", required=False),
)
KINDS = (NODES, PODS, *_OPTIONAL)
