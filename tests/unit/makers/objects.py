"""Plain API objects for the tests of the rules."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuspawner.scheduling import ClusterState, Rules, Verdict, evaluate, explain

KINDS = (
    "pods",
    "namespaces",
    "persistentVolumeClaims",
    "persistentVolumes",
    "storageClasses",
    "csiNodes",
    "csiDrivers",
    "csiStorageCapacities",
    "volumeAttachments",
    "deviceClasses",
    "priorityClasses",
)

Plain = dict[str, Any]

ROOMY = {"cpu": "8", "memory": "32Gi", "pods": "10"}


def node(
    name: str = "a",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Plain] = (),
    unschedulable: bool = False,
    capacity: Mapping[str, str] | None = None,
    **allocatable: str,
) -> Plain:
    """Return a node; keywords are allocatable resources (see `resource`)."""
    amounts = {**ROOMY, **{resource(key): value for key, value in allocatable.items()}}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": amounts, "capacity": capacity or amounts},
    }


def resource(key: str) -> str:
    """Return the resource for a keyword: gpu is nvidia.com/gpu, and "_" becomes "-"."""
    return {"gpu": "nvidia.com/gpu"}.get(key, key.replace("_", "-"))


def pod(
    name: str = "new",
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "hub",
    metadata: Plain | None = None,
    status: Plain | None = None,
    **fields: Any,
) -> Plain:
    """Return a pod; `requests` go to its container, all other fields to its spec."""
    requests = {resource(key): value for key, value in fields.pop("requests", {}).items()}
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}], **fields}
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending", **(status or {})},
    }


def term(labels: Mapping[str, str], key: str = "zone", **fields: Any) -> Plain:
    """Return a term of pod affinity."""
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **fields}


def affinity(near: Sequence[Plain] = (), away: Sequence[Plain] = ()) -> Plain:
    """Return the field of a pod's spec with these required terms."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "affinity": {
            "podAffinity": {required: list(near)},
            "podAntiAffinity": {required: list(away)},
        }
    }


def required(*terms: Plain) -> Plain:
    """Return the field of a pod's spec that requires a node of one of these terms."""
    selector = {"nodeSelectorTerms": list(terms)}
    field = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return {"affinity": {"nodeAffinity": field}}


def named(*names: str) -> Plain:
    """Return a term that requires all of the names."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    return {"matchFields": fields}


def cluster(*nodes: Plain, rules: Rules | None = None, **objects: Any) -> ClusterState:
    """Return a state with only the given objects; all kinds are known."""
    given: dict[str, Any] = {**dict.fromkeys(KINDS, ()), "nodes": nodes, **objects}
    if rules:
        given["rules"] = rules
    return ClusterState.from_objects(**given)


def judge(pod: Plain, *nodes: Plain, **objects: Any) -> Verdict:
    """Explain a pod in a cluster of these objects."""
    return explain(cluster(*nodes, **objects), pod)


def answer(pod: Plain, *nodes: Plain, **objects: Any) -> Verdict:
    """Evaluate a pod in a cluster of these objects."""
    return evaluate(cluster(*nodes, **objects), pod)
