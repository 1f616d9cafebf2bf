"""What vendors and clouds call their devices: resources, labels and taints. Only data.

A name that is missing here costs a name or a choice on the form, and never a start.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

RESOURCES: Mapping[str, tuple[str, str]] = {
    "nvidia.com/gpu": ("NVIDIA", "GPU"),
    "nvidia.com/gpu.shared": ("NVIDIA", "GPU"),
    "amd.com/gpu": ("AMD", "GPU"),
    "gpu.intel.com/i915": ("Intel", "GPU"),
    "gpu.intel.com/xe": ("Intel", "GPU"),
    "habana.ai/gaudi": ("Intel", "Gaudi"),
    "google.com/tpu": ("Google", "TPU"),
    "aws.amazon.com/neuron": ("AWS", "Neuron device"),
}
"""Whose devices a resource has, and what they are.

``aws.amazon.com/neuroncore`` and ``neurondevice`` count the same chips again, so they are left out.
"""

MIG = "nvidia.com/mig-"
"""The prefix of MIG resources if the device plugin uses the mixed strategy."""

PARTITION = re.compile(r"amd\.com/([a-z]px_nps[0-9])")
"""The resource of a partition with AMD's mixed strategy (ROCm/k8s-device-plugin, README)."""

MODEL_LABELS = (
    "nvidia.com/gpu.product",  # NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery
    "amd.com/gpu.product-name",  # ROCm/k8s-device-plugin, cmd/k8s-node-labeller
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",  # intel/intel-device-plugins-for-kubernetes, deployments/nfd
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",  # aws/karpenter-provider-aws, pkg/apis/v1/labels.go
    "karpenter.k8s.aws/instance-accelerator-name",
    "eks.amazonaws.com/instance-gpu-name",  # EKS User Guide, Auto Mode, supported labels
    "karpenter.azure.com/sku-gpu-name",  # Azure/karpenter-provider-azure, pkg/apis/v1beta1
    "gpu.nvidia.com/model",  # CoreWeave
    "k8s.amazonaws.com/accelerator",
)
"""Labels that name the model, the most exact first."""

GPU_LABELS = (
    *MODEL_LABELS,
    "nvidia.com/gpu.present",
    "kubernetes.azure.com/accelerator",
    "amd.com/gpu.device-id",
)
"""Labels that only nodes with GPUs have, the most exact first."""

DISCOVERED = (
    "nvidia.com/",
    "amd.com/",
    "beta.amd.com/",
    "gpu.intel.com/",
    "feature.node.kubernetes.io/",
)
"""How labels begin that GPU feature discovery and the like write once a node exists."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
HOSTNAME = "kubernetes.io/hostname"
NAMELESS = frozenset({"", "k3s", "rke2"})
"""Instance types that name no machine: without a cloud, k3s and RKE2 write their own name."""

GKE_SLICE = "cloud.google.com/gke-gpu-partition-size"
GKE_SHARING = "cloud.google.com/gke-gpu-sharing-strategy"
PARTITION_LABEL = "amd.com/compute-memory-partition"
VARIANT_LABELS = (GKE_SLICE, GKE_SHARING, PARTITION_LABEL, "cloud.google.com/gke-tpu-topology")
"""Labels that tell nodes of one model and one resource apart.

The device plugin of GKE, and with the single strategy AMD's, reports slices, shares and partitions
as whole GPUs.
"""

WHOLE = frozenset({"spx_nps1"})
"""Values of these labels for whole devices."""

MEMORY_LABELS: Mapping[str, int] = {
    "karpenter.k8s.aws/instance-gpu-memory": 1024,
    "eks.amazonaws.com/instance-gpu-memory": 1024,
    "amd.com/gpu.vram": 1,
    "beta.amd.com/gpu.vram": 1,
    "gpu.nvidia.com/vram": 1,
}
"""The memory of each whole GPU, and how many of the label's unit are one GiB."""

TAINTS = frozenset({("sku", "gpu")})
"""Taints that reserve nodes for GPUs, besides those with a resource as key: Azure's convention."""

SHARED = "-SHARED"
_SLICED = "-MIG-"
"""What GPU feature discovery adds to the product of time-sliced GPUs, and of MIG slices."""
_PROFILE = re.compile(r"\b[0-9]+g\.([0-9]+)gb")
"""A profile of MIG slices: ``1g.10gb``."""


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """Whether a resource is one of those that are discovered."""
    is_part = resource.startswith(MIG) or PARTITION.fullmatch(resource)
    return resource in RESOURCES or bool(is_part)


def any_gpu(*amounts: Mapping[str, object]) -> bool:
    """Whether there is a GPU in one of these limits and requests, by resource."""
    return any(is_gpu(name) and str(it[name]) != "0" for it in amounts for name in it)


def maker(resource: str) -> tuple[str, str]:
    """Return whose devices a resource has, and what they are."""
    return RESOURCES.get(resource) or RESOURCES[f"{resource.partition('/')[0]}/gpu"]


def is_slice(resource: str, labels: Mapping[str, str]) -> bool:
    """Whether nodes with these labels give MIG slices by this resource."""
    sliced = any(_SLICED in value for value in labels.values())
    return resource.startswith(MIG) or GKE_SLICE in labels or sliced


def slice_memory(resource: str, labels: Mapping[str, str]) -> int | None:
    """Return how many GB of memory a slice has; None if no resource or label says so."""
    profiles = filter(None, map(_PROFILE.search, (resource, *labels.values())))
    return next((int(it[1]) for it in profiles), None)


def is_shared(resource: str, labels: Mapping[str, str]) -> bool:
    """Whether pods take turns on the GPUs that nodes with these labels give by this resource."""
    suffixed = any(value.endswith(SHARED) for value in labels.values())
    return resource.endswith(".shared") or GKE_SHARING in labels or suffixed


def part(resource: str, labels: Mapping[str, str]) -> str:
    """Name the part of a device that nodes with these labels give; "" for whole devices."""
    if resource.startswith(MIG) or GKE_SLICE in labels:
        return f"MIG {labels.get(GKE_SLICE) or resource.removeprefix(MIG)}"
    partition = PARTITION.fullmatch(resource)
    mode = partition[1] if partition else labels.get(PARTITION_LABEL, "")
    return "" if mode in WHOLE else mode.upper().replace("_", " ")
