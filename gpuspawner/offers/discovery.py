"""Discovers accelerators from the nodes if the administrator configured none.

It reads the labels and taints of NVIDIA's GPU feature discovery, GKE, Karpenter and EKS. If no
label names the model (as on AKS and in EKS node groups), it distinguishes nodes by instance type.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, count
from types import MappingProxyType

import msgspec

from gpuspawner.offers.shapes import Frozen, freeze
from gpuspawner.offers.types import Accelerator
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState

RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
)
MIG = "nvidia.com/mig-"
"""The prefix of MIG resources if the device plugin uses the mixed strategy."""

MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
)
"""Labels that name the model, the most exact first."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
SHARED_MEMORY = 8 * 2**30
"""Size of /dev/shm in bytes. The workers of a PyTorch DataLoader crash with only 64 MB."""

SHARED = "-SHARED"
"""The suffix of the product label if a GPU is time-sliced."""

_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}
_GB = re.compile(r"^(\d+)gb$", re.IGNORECASE)
_MEBIBYTES = re.compile(r"[0-9]{1,7}")
_MOST = 64
"""The largest GPU count to offer, so that a wrong number on a node can't fill the form."""


class Discovery(msgspec.Struct, frozen=True):
    """The accelerators, sorted by key, and a note for the administrator in one line."""

    accelerators: tuple[Accelerator, ...]
    note: str


class _Model(msgspec.Struct, frozen=True):
    """A group of nodes; `label` is empty if no label names the model."""

    label: str
    value: str
    resource: str


def discover(state: ClusterState) -> Discovery:
    """Find the accelerators of the nodes. The same nodes always get the same keys."""
    nodes: dict[tuple[str, str, str], list[NodeInfo]] = {}
    for node in state.nodes.values():
        for resource in gpus(node):
            label, value = model_label(node)
            nodes.setdefault((label, value, resource), []).append(node)
    found: dict[str, Accelerator] = {}
    for group in sorted(nodes):
        model = _Model(*group)
        key = _free_key(_key(model), found)
        found[key] = _accelerator(key, model, nodes[group])
    accelerators = tuple(found[key] for key in sorted(found))
    return Discovery(accelerators, _note(accelerators))


def gpus(node: NodeInfo) -> Iterator[str]:
    """Yield the resources of a node that are GPUs, also if none of them is allocatable."""
    # If all GPUs of a node are unhealthy, they still count in its capacity.
    for resource in filter(is_gpu, node.capacity.keys() | node.allocatable.keys()):
        if node.capacity.get(resource, 0) + node.allocatable.get(resource, 0) > 0:
            yield resource


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """Whether a resource is one of those that are discovered."""
    return resource in RESOURCES or resource.startswith(MIG)


def model_label(node: NodeInfo) -> tuple[str, str]:
    """Return the label that names a node's model, or else its type, and its value; "" if none."""
    for label in (*MODEL_LABELS, INSTANCE_TYPE):
        if node.labels.get(label):
            return label, node.labels[label]
    return "", ""


def _key(model: _Model) -> str:
    parts = [model.value or "gpu"]
    if model.resource.startswith(MIG):
        parts.append(model.resource.removeprefix("nvidia.com/"))
    elif model.resource.endswith(".shared"):
        parts.append("shared")
    text = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    return text.removeprefix("nvidia-")[-60:].strip("-") or "gpu"


def _free_key(key: str, taken: Iterable[str]) -> str:
    keys = chain((key,), (f"{key}-{number}" for number in count(2)))
    return next(candidate for candidate in keys if candidate not in taken)


def _accelerator(key: str, model: _Model, nodes: list[NodeInfo]) -> Accelerator:
    shared = model.value.endswith(SHARED) or model.resource.endswith(".shared")
    most = max(node.allocatable.get(model.resource, 0) for node in nodes)
    return Accelerator(
        key=key,
        display_name=_display_name(model, shared=shared),
        description=_memory(model.resource.removesuffix(".shared"), nodes),
        resource=model.resource,
        # A device plugin may refuse several shares, and they don't give more than one GPU anyway.
        counts=(1,) if shared else tuple(range(1, min(max(most, 1), _MOST) + 1)),
        node_selector=MappingProxyType({model.label: model.value} if model.label else {}),
        node_affinity=() if model.label else (_UNLABELLED,),
        tolerations=_tolerations(model.resource, nodes),
        shared_memory=SHARED_MEMORY,
        discovered=True,
    )


def _memory(resource: str, nodes: list[NodeInfo]) -> str:
    """Return the memory of each GPU as text; "" if the nodes' labels differ."""
    labels = (f"{resource}.memory", "karpenter.k8s.aws/instance-gpu-memory")
    sizes = {next(filter(None, map(node.labels.get, labels)), "") for node in nodes}
    mebibytes = sizes.pop() if len(sizes) == 1 else ""
    return f"{int(mebibytes) / 1024:.3g} GiB of memory" if _MEBIBYTES.fullmatch(mebibytes) else ""


_UNLABELLED: Frozen = freeze(
    {
        "matchExpressions": [
            {"key": label, "operator": "DoesNotExist"} for label in (*MODEL_LABELS, INSTANCE_TYPE)
        ]
    }
)


def _tolerations(resource: str, nodes: list[NodeInfo]) -> tuple[Frozen, ...]:
    """Return tolerations only for taints that reserve nodes for GPU pods."""
    found = {
        (taint.key, "" if _is_for_gpus(taint.key, resource) else taint.value, taint.effect)
        for node in nodes
        for taint in node.taints
        if _is_for_gpus(taint.key, resource) or (taint.key, taint.value) == ("sku", "gpu")
    }
    return tuple(freeze(_toleration(*taint)) for taint in sorted(found))


def _is_for_gpus(key: str, resource: str) -> bool:
    return key == resource or key in RESOURCES


def _toleration(key: str, value: str, effect: str) -> dict[str, str]:
    how = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key, **how, "effect": effect}


def _display_name(model: _Model, *, shared: bool) -> str:
    vendor = _VENDORS.get(model.resource.split(".com/")[0].rpartition(".")[2], "")
    if model.label in ("", INSTANCE_TYPE):
        where = f" ({model.value})" if model.value else ""
        name = f"{vendor} GPU{where}".strip()
    else:
        words = _words(model.value.removesuffix(SHARED))
        name = " ".join(words if words[0] == vendor else (vendor, *words)).strip()
    if model.resource.startswith(MIG):
        name = f"{name} MIG {model.resource.removeprefix(MIG)}"
    return f"{name}, shared" if shared else name


def _words(value: str) -> list[str]:
    words = value.split("-")
    if value.islower():
        words = [word.upper() if _is_name(word) else word.capitalize() for word in words]
    return [_VENDORS.get(word.lower(), _GB.sub(r"\1 GB", word)) for word in words if word] or [""]


def _is_name(word: str) -> bool:
    """Return whether a word is a name in capital letters, such as T4, H100 or RTX."""
    return len(word) <= 3 or any(character.isdigit() for character in word)


def _note(accelerators: tuple[Accelerator, ...]) -> str:
    found = ", ".join(f"{it.key} (up to {it.counts[-1]} a node)" for it in accelerators)
    return (
        "GPUSpawner.accelerators is empty, so the nodes' labels were read. "
        f"Found: {found or 'no GPU'}. A pool that has no node now cannot be seen: configure it."
    )
