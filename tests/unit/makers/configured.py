"""Examples of configurations."""

from typing import Any

from gpuspawner.offers.offers import Offers

T4 = {"node_selector": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}}
A100 = {
    "display_name": "NVIDIA A100",
    "description": "Large models",
    "resource": "nvidia.com/gpu",
    "counts": [1, 2, 4],
    "node_selector": {"nvidia.com/gpu.product": "A100-SXM4-80GB"},
    "node_affinity": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["dgx-1"]}]},
    ],
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "sku", "operator": "Equal", "value": "gpu"},
    ],
    "environment": {"NCCL_DEBUG": "INFO"},
    "volumes": [{"name": "models", "hostPath": {"path": "/srv/models"}}],
    "volume_mounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
    "runtime_class": "nvidia",
    "shared_memory": "8Gi",
    "memory_choices": ["32Gi", "64Gi"],
    "cpu_choices": [4, "500m"],
    "default": {"gpus": 2, "image": "pytorch", "memory": "64Gi", "cpu": 0.5},
    "scale_up": {"max_nodes": 4, "minutes": 8},
}
IMAGES = {
    "minimal": {"image": "quay.io/jupyter/minimal-notebook:latest"},
    "pytorch": {
        "display_name": "PyTorch",
        "image": "quay.io/jupyter/pytorch-notebook:cuda12-latest",
        "accelerators": ["A100"],
    },
}


def offers(**traits: Any) -> Offers:
    given = {"accelerators": {"a100": A100, "t4": T4}, "images": IMAGES}
    return Offers.parse(**(given | traits))


def accelerator(**fields: Any) -> Any:
    """Return the accelerator of the smallest entry with these fields added."""
    return Offers.parse(accelerators={"t4": {**T4, **fields}}).accelerators["t4"]
