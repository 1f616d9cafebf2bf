"""Lets a server start only if its container sees the GPUs that it was granted."""

from collections.abc import Iterator

from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.gpu_check import gpus, with_gpu_check
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.start.host import Host
from gpuspawner.traits.trait_types import setting


def checked(spawner: Host, state: ClusterState, pod: Manifest) -> Manifest:
    """Return a pod with the check, if ``GPUSpawner.check_gpus`` is set and it has NVIDIA GPUs."""
    if not setting(spawner, "check_gpus"):
        return pod
    return with_gpu_check(pod, frozenset(_shared(state, pod)))


def _shared(state: ClusterState, pod: Manifest) -> Iterator[str]:
    """Yield the resources that may count one GPU several times; all if the hub sees no nodes.

    GPU Feature Discovery labels a node with the shares of each GPU.
    """
    selector = (pod["spec"].get("nodeSelector") or {}).items()
    nodes = [it for it in state.nodes.values() if selector <= it.labels.items()]
    for resource in gpus(pod):
        if not nodes or any(_shares(it, resource) for it in nodes):
            yield resource


def _shares(node: NodeInfo, resource: str) -> bool:
    return node.labels.get(f"{resource}.replicas", "0") not in ("0", "1")
