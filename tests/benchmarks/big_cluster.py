"""A cluster at the size that Kubernetes supports, the same for us and for kube-scheduler."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Plain = dict[str, Any]

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
PRODUCT = "nvidia.com/gpu.product"
PODS_A_NODE = 30
GPUS_A_NODE = 8
# The last model has no GPU free anywhere.
PRODUCTS = ("Tesla-T4", "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3")
NAMESPACE = "jhub"
NOTEBOOK = {"app": "jupyterhub", "component": "singleuser-server"}


def _resources(cpu: str, memory: str, gpus: int = 0) -> Plain:
    devices = {GPU: str(gpus)} if gpus else {}
    return {"requests": {"cpu": cpu, "memory": memory, **devices}, "limits": devices}


def _notebook(name: str, gpus: int, product: str, **spec: Any) -> Plain:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": NOTEBOOK},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [
                {"name": "notebook", "image": "i", "resources": _resources("2", "8Gi", gpus)}
            ],
            "nodeSelector": {PRODUCT: product},
            "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def _same_app(**more: Any) -> Plain:
    return {"labelSelector": {"matchLabels": {"app": "jupyterhub"}}, **more}


PROBES: dict[str, Plain] = {
    "usual": _notebook("usual", 1, PRODUCTS[0]),
    "refused": _notebook("refused", GPUS_A_NODE, PRODUCTS[2]),
    "worst": _notebook(
        "worst",
        1,
        PRODUCTS[0],
        topologySpreadConstraints=[
            _same_app(maxSkew=5, topologyKey=ZONE, whenUnsatisfiable="DoNotSchedule"),
            _same_app(maxSkew=9, topologyKey=HOST, whenUnsatisfiable="DoNotSchedule"),
        ],
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [_same_app(topologyKey=ZONE)]
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": HOST}
                ]
            },
        },
    ),
}


@dataclass(frozen=True)
class BigCluster:
    """Objects as the API gives them, those fields left out that no rule reads."""

    nodes: list[Plain]
    pods: list[Plain]
    namespaces: list[Plain]

    @classmethod
    def of(cls, nodes: int, seed: int = 1) -> BigCluster:
        """Make a cluster of so many nodes: a fifth with GPUs, thirty pods on each."""
        draw = random.Random(seed)
        made = [_node(index) for index in range(nodes)]
        pods = [
            pod for index, node in enumerate(made) for pod in _pods(draw, index, node["metadata"])
        ]
        names = ("jhub", "research", "kube-system", "services")
        return cls(made, pods, [{"metadata": {"name": name, "labels": {}}} for name in names])


def _node(index: int) -> Plain:
    name = f"node-{index:05}"
    labels = {HOST: name, ZONE: f"zone-{index % 3}", "kubernetes.io/arch": "amd64"}
    allocatable = {"cpu": "63500m", "memory": "515000000Ki", "pods": "110"}
    spec: Plain = {}
    if index % 5 == 0:
        labels[PRODUCT] = PRODUCTS[index // 5 % 3]
        allocatable[GPU] = str(GPUS_A_NODE)
        spec["taints"] = [{"key": GPU, "value": "present", "effect": "NoSchedule"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _pods(draw: random.Random, index: int, node: Plain) -> list[Plain]:
    product = node["labels"].get(PRODUCT)
    pods = [_pod(draw, f"pod-{index:05}-{number}") for number in range(PODS_A_NODE)]
    for pod in pods:
        pod["spec"]["nodeName"] = node["name"]
    if product:
        full = product == PRODUCTS[2] or draw.random() < 0.7
        for pod in pods[: GPUS_A_NODE if full else draw.randrange(GPUS_A_NODE)]:
            pod["spec"]["containers"][0]["resources"] = _resources("2", "8Gi", 1)
    return pods


def _pod(draw: random.Random, name: str) -> Plain:
    app, namespace = draw.choice(
        [("jupyterhub", "jhub"), ("serve", "services"), ("agent", "kube-system")]
    )
    labels = {"app": app, "pod-template-hash": f"{draw.randrange(500):x}"}
    if app == "jupyterhub":
        labels |= NOTEBOOK | {"hub.jupyter.org/username": name}
    if app == "serve" and draw.random() < 0.02:
        labels["app"] = "train"
    resources = _resources(
        draw.choice(["100m", "250m", "1"]), draw.choice(["128Mi", "1Gi", "2500000000"])
    )
    pod: Plain = {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]},
        "status": {"phase": "Running"},
    }
    if draw.random() < 0.01:
        term = {"labelSelector": {"matchLabels": {"app": "alone"}}, "topologyKey": HOST}
        pod["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    return pod


def write(path: Path, cluster: BigCluster) -> None:
    """Write a cluster and the pods to place as one JSON file."""
    with path.open("w") as out:
        json.dump(
            {
                "nodes": cluster.nodes,
                "pods": cluster.pods,
                "probes": PROBES,
                "namespaces": cluster.namespaces,
            },
            out,
        )
