"""Plain API objects for the rules' tests, with only what a test is about."""

from gpuspawner.scheduling import ClusterState, Verdict, evaluate, explain

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

ROOMY = {"cpu": "8", "memory": "32Gi", "pods": "10"}


def node(name="a", labels=None, taints=(), unschedulable=False, capacity=None, **allocatable):
    """A node; more resources by name, with "__" for "/" and "_" for "."."""
    amounts = {**ROOMY, **{resource(key): value for key, value in allocatable.items()}}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": amounts, "capacity": capacity or amounts},
    }


def resource(key):
    """Turn a keyword into a resource's name: gpu is nvidia.com/gpu."""
    return {"gpu": "nvidia.com/gpu"}.get(key, key.replace("_", "-"))


def pod(name="new", node=None, labels=None, namespace="hub", metadata=None, status=None, **fields):
    """A pod; `requests` are its container's, all other fields its spec's."""
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


def cluster(*nodes, rules=None, **objects):
    """A state in which there is nothing but the objects given."""
    given = {**dict.fromkeys(KINDS, ()), "nodes": nodes, **objects}
    extra = {"rules": rules} if rules else {}
    return ClusterState.from_objects(**given, **extra)


def texts(verdict: Verdict, name: str = "a") -> list[str]:
    """The scheduler's texts about a node."""
    return verdict.reasons.get(name, [])


def judge(pod, *nodes, **objects):
    """Explain a pod in a cluster of these objects."""
    return explain(cluster(*nodes, **objects), pod)


def answer(pod, *nodes, **objects):
    """Evaluate a pod in a cluster of these objects."""
    return evaluate(cluster(*nodes, **objects), pod)
