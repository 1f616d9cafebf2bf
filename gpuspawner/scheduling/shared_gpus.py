"""Shares of GPUs, of which device plugins give a container only one.

kube-scheduler counts shares as it counts GPUs. Only on the node does the plugin refuse a container
that asks for several, and the pod fails.
"""

from collections.abc import Collection, Mapping

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import parse_quantity

from .node_info import NodeInfo

_NVIDIA = "{}.sharing-strategy"
_GKE = "cloud.google.com/gke-gpu-sharing-strategy"
_REFUSES: Mapping[tuple[str, str], bool] = {
    (_NVIDIA, "mps"): True,
    (_NVIDIA, "time-slicing"): False,
    (_GKE, "time-sharing"): True,
    (_GKE, "TIME_SHARING"): True,
    (_GKE, "mps"): False,
    (_GKE, "MPS"): False,
}
"""Labels of nodes that share their GPUs, and whether the plugin refuses several shares by default.

NVIDIA's GPU feature discovery writes its label for each resource. The plugin refuses several shares
if ``failRequestsGreaterThanOne`` is true: that is the default of MPS, and until v0.19 there is no
other way, but not of time-slicing (``internal/rm/rm.go`` and ``api/config/v1/config.go`` of
NVIDIA/k8s-device-plugin, v0.20.0). GKE's plugin always refuses them with time-sharing, and with MPS
on nodes of several GPUs (``pkg/gpu/nvidia/gpusharing/gpusharing.go`` of
GoogleCloudPlatform/container-engine-accelerators, June 2026). GKE writes its values in either way.
"""


def several(pod: Pod) -> frozenset[str]:
    """Return NVIDIA's resources of which a container asks for more than one.

    Raises:
        QuantityError: A limit isn't a quantity.
    """
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    limits = [(it.resources.limits or {}).items() for it in containers if it.resources]
    return frozenset(
        name
        for each in limits
        for name, amount in each
        if name.startswith("nvidia.com/") and parse_quantity(str(amount)) > 1
    )


def refuses(node: NodeInfo, asked: Collection[str]) -> bool | None:
    """Whether the node's plugin refuses a container that asks for several of these resources.

    None if only the plugin's setting tells. A pod that has several says that it doesn't.
    """
    labels = [
        (label, node.labels.get(label.format(resource.removesuffix(".shared")), ""))
        for resource in asked
        for label in (_NVIDIA, _GKE)
        if not any(pod.requested.get(resource, 0) > 1 for pod in node.pods.values())
    ]
    found = [_REFUSES[it] for it in labels if it in _REFUSES]
    return any(found) or (None if found else False)
