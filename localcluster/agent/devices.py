"""Simulated GPUs: those of each node, and those that each pod has."""

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from localcluster.agent.api import Object
from localcluster.nodes import HIDDEN_DEVICES, amounts
from localcluster.nvml_stub import Gpu

GIB = 2**30

_GPU = "gpu"
_SLICE = re.compile(r"mig-(\d+g\.(\d+)gb.*)")
_OLD_NAME = "alpha.kubernetes.io/nvidia-gpu"
_NAMES = uuid.UUID("5f2f7c0e-3c8e-4b7a-9d5e-6c1f0d9a7b31")

# Searched for in the node's label values, in this order. Memory is as NVML reports it.
_MODELS = (
    ("k80", Gpu("Tesla K80", "", 11441 * 2**20)),
    ("p100", Gpu("Tesla P100-PCIE-16GB", "", 16384 * 2**20)),
    ("v100", Gpu("Tesla V100-SXM2-16GB", "", 16384 * 2**20)),
    ("p3.", Gpu("Tesla V100-SXM2-16GB", "", 16384 * 2**20)),
    ("nc6s_v3", Gpu("Tesla V100-PCIE-16GB", "", 16384 * 2**20)),
    ("t4", Gpu("Tesla T4", "", 15360 * 2**20)),
    ("l4", Gpu("NVIDIA L4", "", 23034 * 2**20)),
    ("a100-sxm4-80gb", Gpu("NVIDIA A100-SXM4-80GB", "", 81920 * 2**20)),
    ("a100", Gpu("NVIDIA A100-SXM4-40GB", "", 40960 * 2**20)),
    ("h100", Gpu("NVIDIA H100 80GB HBM3", "", 81559 * 2**20)),
)
_UNKNOWN = Gpu("NVIDIA GPU", "", 16 * GIB)


@dataclass(frozen=True)
class Device:
    """A GPU, or a slice of one, that a node offers under a resource name.

    Attributes:
        gpu: the GPU as NVML shows it in the container; with one slice if the device is a slice.
        visible_as: its name in NVIDIA_VISIBLE_DEVICES.
    """

    gpu: Gpu
    visible_as: str


def devices_of(node: Object) -> dict[str, tuple[Device, ...]]:
    """Return a node's devices by resource name, from its labels and allocatable."""
    name = node["metadata"]["name"]
    model = _model(node["metadata"].get("labels", {}))
    devices = {}
    for resource, quantity in node["status"]["allocatable"].items():
        vendor, _, kind = resource.partition("/")
        if vendor == "nvidia.com" or resource == _OLD_NAME:
            names = [f"{name}/{resource}/{index}" for index in range(int(quantity))]
            devices[resource] = tuple(_device(model, kind, unique) for unique in names)
    return devices


class Allocations:
    """The devices of each pod, on all nodes."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def take(
        self, holder: str, container: Object, node: Object, reusable: Collection[Device] = ()
    ) -> tuple[Device, ...]:
        """Give a pod, by its uid, the devices that its container requests.

        A pod that bypassed the scheduler may request more than are left; it gets the rest.

        Args:
            holder: the pod's uid.
            container: its specification.
            node: where it runs.
            reusable: the devices of the pod's init containers that have ended. They come first:
                devicesToAllocate in pkg/kubelet/cm/devicemanager/manager.go (v1.36.2).
        """
        taken: list[Device] = []
        limits = container.get("resources", {}).get("limits", {})
        for resource, devices in devices_of(node).items():
            again = [device for device in devices if device in reusable]
            free = [device for device in devices if device.visible_as not in self._holders]
            taken += [*again, *free][: int(limits.get(resource, "0"))]
        for device in taken:
            self._holders[device.visible_as] = holder
        return tuple(taken)

    def give_back(self, holder: str) -> None:
        """Free all devices of a pod."""
        self._holders = {name: who for name, who in self._holders.items() if who != holder}


def visible(taken: Sequence[Device], asked: str | None, node: Object) -> tuple[Device, ...]:
    """Return the devices that a container sees.

    Args:
        taken: the devices that it has.
        asked: its own NVIDIA_VISIBLE_DEVICES. If a node's default runtime is NVIDIA's, a
            container that has no device and sets ``all``, as many images do, sees every GPU of
            the node.
        node: where it runs.
    """
    devices = devices_of(node)
    if not taken and asked == "all":
        return tuple(device for of_one in devices.values() for device in of_one)
    hidden = amounts(node, HIDDEN_DEVICES)
    invisible = {
        device
        for resource, of_one in devices.items()
        for device in [it for it in taken if it in of_one][: hidden.get(resource, 0)]
    }
    return tuple(device for device in taken if device not in invisible)


def _model(labels: Mapping[str, str]) -> Gpu:
    values = " ".join(labels.values()).lower()
    found = next((gpu for word, gpu in _MODELS if _has_word(values, word)), _UNKNOWN)
    if product := labels.get("nvidia.com/gpu.product"):
        found = replace(found, name=product.replace("-", " ", 1))
    if megabytes := labels.get("nvidia.com/gpu.memory"):
        found = replace(found, memory=int(megabytes) * 2**20)
    return found


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}", text) is not None


def _device(model: Gpu, kind: str, unique: str) -> Device:
    number = uuid.uuid5(_NAMES, unique)
    if match := _SLICE.fullmatch(kind):
        slice_name, gigabytes = match[1], int(match[2])
        part = Gpu(f"{model.name} MIG {slice_name}", f"MIG-{number}", gigabytes * GIB)
        parent = replace(model, uuid=f"GPU-{uuid.uuid5(number, _GPU)}", slices=(part,))
        return Device(parent, part.uuid)
    gpu = replace(model, uuid=f"GPU-{number}")
    return Device(gpu, gpu.uuid)
