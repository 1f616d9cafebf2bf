"""Whether a kubelet admits a pod that was bound to its node. No input or output.

A kubelet asks, in this order, its eviction manager, its device manager and the scheduler's
predicates (pkg/kubelet/kubelet.go, v1.36.2), because the scheduler's view may be old.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from gpuspawner.kube.objects import strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling.node_affinity import node_choice
from gpuspawner.scheduling.requests import allocatable, pod_requests
from gpuspawner.scheduling.rules import DEFAULT_RULES
from localcluster.agent.api import Object
from localcluster.agent.pressure import MEMORY
from localcluster.nodes import LOST_DEVICES, UNHEALTHY_DEVICES, amounts

#: pkg/kubelet/cm/devicemanager/manager.go: devicesToAllocate.
DEVICE_ERRORS = {
    "unavailable": "requested number of devices unavailable for {resource}. "
    "Requested: {requested}, Available: {available}",
    "unhealthy": "no healthy devices present; cannot allocate unhealthy devices {resource}",
    "unregistered": "cannot allocate unregistered device {resource}",
    "shared": 'rpc error: code = Unknown desc = invalid allocation request for "{resource}": '
    "invalid request: maximum request size for shared resources is 1; found {requested}",
}
_CRITICAL = 2_000_000_000
_ORDER = ("pods", "cpu", "memory", "ephemeral-storage")
_NOT_MATCHED = "node(s) didn't match Pod's node affinity/selector"


@dataclass(frozen=True)
class Rejection:
    """Why a pod fails at once: one word, and a sentence."""

    reason: str
    message: str


def rejection(
    pod: Object,
    node: Object,
    others: Iterable[Object],
    device_error: str,
    pressures: Collection[str],
) -> Rejection | None:
    """Return why the kubelet refuses a pod, or None if it admits it.

    Args:
        pod: the new pod.
        node: its node.
        others: the pods that the kubelet admitted before and that haven't ended.
        device_error: a key of `DEVICE_ERRORS`, if a device of the pod is gone, or "".
        pressures: the conditions, such as MemoryPressure, that say what the node is short of.
    """
    if _is_turned_away(pod, pressures):
        return Rejection("Evicted", f"The node had condition: [{' '.join(pressures)}]. ")
    there = allocatable(node["status"].get("allocatable"))
    used: dict[str, int] = {}
    for other in others:
        for resource, amount in _requests(other).items():
            used[resource] = used.get(resource, 0) + amount
        used["pods"] = used.get("pods", 0) + 1
    asked = {**_requests(pod), "pods": 1}
    return (
        _without_device(asked, used, there, node, device_error)
        or _out_of(asked, used, there)
        or _mismatch(pod, node)
    )


def is_critical(pod: Object) -> bool:
    """Return whether the kubelet never evicts the pod."""
    return int(pod["spec"].get("priority") or 0) >= _CRITICAL


def _is_turned_away(pod: Object, pressures: Collection[str]) -> bool:
    """Return whether the eviction manager refuses the pod (eviction_manager.go: Admit)."""
    if not pressures or is_critical(pod):
        return False
    is_only_memory = list(pressures) == [MEMORY.condition]
    return not is_only_memory or pod["status"].get("qosClass") == "BestEffort"


def _without_device(
    asked: Mapping[str, int],
    used: Mapping[str, int],
    there: Mapping[str, int],
    node: Object,
    error: str,
) -> Rejection | None:
    """Return why the device manager has no device for the pod."""
    lost, sick = amounts(node, LOST_DEVICES), amounts(node, UNHEALTHY_DEVICES)
    for resource, requested in asked.items():
        # Only resources of the node count: others may be the cluster's.
        if not requested or "/" not in resource or resource not in there:
            continue
        healthy = there[resource] - lost.get(resource, 0)
        available = max(0, healthy - used.get(resource, 0))
        found = error
        if not found and requested > available:
            has_any = healthy > 0 or not (lost.get(resource) or sick.get(resource))
            found = "unavailable" if has_any else "unhealthy"
        if found:
            shown = 0 if error else available
            text = DEVICE_ERRORS[found].format(
                resource=resource, requested=requested, available=shown
            )
            message = f"Allocate failed due to {text}, which is unexpected"
            return Rejection("UnexpectedAdmissionError", message)
    return None


def _out_of(
    asked: Mapping[str, int], used: Mapping[str, int], there: Mapping[str, int]
) -> Rejection | None:
    """Return the first resource of which the node has too little."""
    for resource in _ORDER:
        requested, capacity = asked.get(resource, 0), there.get(resource)
        in_use = used.get(resource, 0)
        if capacity is not None and requested and in_use + requested > capacity:
            message = (
                f"Node didn't have enough resource: {resource}, requested: {requested}, "
                f"used: {in_use}, capacity: {capacity}"
            )
            return Rejection(f"OutOf{resource}", message)
    return None


def _mismatch(pod: Object, node: Object) -> Rejection | None:
    choice = node_choice(strict_convert(pod, Pod).spec)
    metadata = node["metadata"]
    if choice.matches(metadata.get("labels", {}), metadata["name"]):
        return None
    return Rejection("NodeAffinity", f"Predicate NodeAffinity failed: {_NOT_MATCHED}")


def _requests(pod: Object) -> Mapping[str, int]:
    return pod_requests(strict_convert(pod, Pod), DEFAULT_RULES)
