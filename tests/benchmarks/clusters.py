"""Large clusters for the benchmarks, built from JSON, as a live view builds them."""

from collections.abc import Iterator

import msgspec

from gpuspawner.kube.objects import convert, decode
from gpuspawner.scheduling import ClusterState

MODELS = (
    "Tesla-T4",
    "NVIDIA-L4",
    "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-H100-80GB-HBM3",
)
ZONES = ("zone-a", "zone-b", "zone-c")
OTHER_KINDS = (
    "Namespace",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "DeviceClass",
    "PriorityClass",
)


def node(number: int, *, gpu: bool) -> dict[str, object]:
    """Return a node of 8 GPUs with the usual taint and labels, or a node without GPUs."""
    allocatable = {"cpu": "95", "memory": "700Gi", "pods": "110", "ephemeral-storage": "800Gi"}
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": ZONES[number % 3],
        "kubernetes.io/arch": "amd64",
    }
    taints = []
    if gpu:
        allocatable["nvidia.com/gpu"] = "8"
        labels["nvidia.com/gpu.product"] = MODELS[number % len(MODELS)]
        taints.append({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"})
    return {
        "metadata": {"name": f"node-{number}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def running_pod(number: int, node_number: int, *, gpus: int) -> dict[str, object]:
    """Return a running notebook, with its own claim and KubeSpawner's labels."""
    requests = {"cpu": "500m", "memory": "2Gi"}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    name = f"jupyter-user{number}"
    return {
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "labels": {
                "app": "jupyterhub",
                "component": "singleuser-server",
                "hub.jupyter.org/username": f"user{number}",
                "hub.jupyter.org/network-access-hub": "true",
            },
        },
        "spec": {
            "nodeName": f"node-{node_number}",
            "containers": [{"name": "notebook", "resources": {"requests": requests}}],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": f"claim-{name}"}}],
            "priority": 0,
        },
        "status": {"phase": "Running"},
    }


def objects(nodes: int, gpu_nodes: int, pods: int, full: bool) -> Iterator[tuple[str, bytes]]:
    """Yield all objects of a cluster as JSON, each with its kind.

    Args:
        nodes: how many.
        gpu_nodes: how many of them have GPUs.
        pods: how many, spread evenly over the nodes.
        full: whether all GPUs are in use, or seven of eight.
    """
    for number in range(nodes):
        yield "Node", msgspec.json.encode(node(number, gpu=number < gpu_nodes))
    taken = dict.fromkeys(range(gpu_nodes), 0)
    for number in range(pods):
        place = number % nodes
        gpus = 0
        if place in taken and taken[place] < (8 if full else 6 + place % 3):
            gpus = 1
            taken[place] += 1
        yield "Pod", msgspec.json.encode(running_pod(number, place, gpus=gpus))


def cluster(nodes: int, gpu_nodes: int, pods: int, *, full: bool = False) -> ClusterState:
    """Build the state of a cluster."""
    state = ClusterState()
    for kind in ("Node", "Pod", *OTHER_KINDS):
        state.mark_known(kind)
    for kind, raw in objects(nodes, gpu_nodes, pods, full):
        state.put(decode(kind, raw))
    for kind, plain in HOME:
        state.put(convert(kind, plain))
    for number in range(nodes):
        state.put(convert("CSINode", csi_node(number)))
    return state


def gpu_request(model: str | None = MODELS[3]) -> dict[str, object]:
    """Return a pod as KubeSpawner creates it for one GPU."""
    limits = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
    return {
        "metadata": {
            "name": "jupyter-new",
            "namespace": "team-1",
            "labels": {
                "app": "jupyterhub",
                "component": "singleuser-server",
                "hub.jupyter.org/username": "new",
            },
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": 0,
            "containers": [
                {
                    "name": "notebook",
                    "image": "quay.io/jupyter/pytorch-notebook:cuda12",
                    "args": ["jupyterhub-singleuser"],
                    "env": [{"name": f"VARIABLE_{n}", "value": "x" * 40} for n in range(20)],
                    "ports": [{"name": "notebook-port", "containerPort": 8888}],
                    "resources": {"limits": limits, "requests": limits},
                }
            ],
            "nodeSelector": {"nvidia.com/gpu.product": model} if model else {},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"},
                {"key": "hub.jupyter.org_dedicated", "value": "user", "effect": "NoSchedule"},
            ],
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "preference": {
                                "matchExpressions": [
                                    {
                                        "key": "hub.jupyter.org/node-purpose",
                                        "operator": "In",
                                        "values": ["user"],
                                    }
                                ]
                            },
                        }
                    ]
                }
            },
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        },
    }


def with_home(pod: dict[str, object]) -> dict[str, object]:
    """Return the pod with a home volume; `HOME` has its claim, its disk and the nodes' limits."""
    volumes = [{"name": "home", "persistentVolumeClaim": {"claimName": "claim-new"}}]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


HOME: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "PersistentVolumeClaim",
        {
            "metadata": {
                "name": "claim-new",
                "namespace": "team-1",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "disk-new"},
            "status": {"phase": "Bound"},
        },
    ),
    (
        "PersistentVolume",
        {
            "metadata": {"name": "disk-new"},
            "spec": {
                "csi": {"driver": "disks.example.org", "volumeHandle": "new"},
                "claimRef": {"namespace": "team-1", "name": "claim-new"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": "topology.kubernetes.io/zone",
                                        "operator": "In",
                                        "values": [ZONES[1]],
                                    }
                                ]
                            }
                        ]
                    }
                },
            },
            "status": {"phase": "Bound"},
        },
    ),
)


def csi_node(number: int) -> dict[str, object]:
    """Return the CSINode of a node, which can attach 127 disks."""
    driver = {"name": "disks.example.org", "nodeID": "x", "allocatable": {"count": 127}}
    return {"metadata": {"name": f"node-{number}"}, "spec": {"drivers": [driver]}}


def worst_request() -> dict[str, object]:
    """Return a pod with spreading, affinity and anti-affinity: the evaluation visits every pod."""
    pod = gpu_request(None)
    spec = pod["spec"]
    selector = {"matchLabels": {"app": "jupyterhub"}}
    meant = {"labelSelector": selector, "topologyKey": "topology.kubernetes.io/zone"}
    alone = {
        "labelSelector": {"matchLabels": {"hub.jupyter.org/username": "new"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    everywhere = {"namespaceSelector": {}}
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 100_000,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
    ]
    spec["affinity"]["podAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [{**meant, **everywhere}]
    }
    spec["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [{**alone, **everywhere}]
    }
    return pod
