"""The kinds of objects that the view follows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, and its collection in the API.

    Attributes:
        name: The objects' ``kind``.
        plural: The resource, as RBAC names it.
        path: The path of the collection in all namespaces.
        field_selector: Selects the objects to follow; "" for all.
        required: Whether every verdict needs this kind.
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
    # The same selector as kube-scheduler's (pkg/scheduler/scheduler.go, newPodInformer): a pod
    # that ends arrives as DELETED.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
_STORAGE = "/apis/storage.k8s.io/v1"
# If the hub may not read one of these, only pods whose placement depends on it become unknown.
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
    # Needed only if admission hasn't written the priority into the pod: if its dry run failed, say.
    Kind(
        "PriorityClass",
        "priorityclasses",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        required=False,
    ),
    # In version v1 since Kubernetes 1.34.
    Kind("DeviceClass", "deviceclasses", "/apis/resource.k8s.io/v1/deviceclasses", required=False),
)
KINDS = (NODES, PODS, *_OPTIONAL)
