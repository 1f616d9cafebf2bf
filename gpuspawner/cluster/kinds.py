"""Which kinds of objects the view follows. One more kind is one more row.

Volumes, claims, storage classes and namespaces are to come as rows that are not required: without
the right to read them only the pods that use them become unknown.
"""

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
KINDS = (NODES, PODS)
