"""Node pools for which an administrator declares autoscaling: ``"scale_up"`` of an accelerator.

An autoscaler reacts only to Pending pods, so a refusal never triggers it. If a new node would help,
the spawner must therefore create the pod, and tell the user how long that usually takes.
"""

from dataclasses import dataclass

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers import Accelerator
from gpuspawner.offers.shapes import thaw
from gpuspawner.scheduling.node_affinity import node_choice
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.outcome import AWAY_TAINTS
from gpuspawner.scheduling.requests import Amounts, pod_requests
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.taint_toleration import untolerated


@dataclass(frozen=True, slots=True)
class CanScaleUp:
    """The nodes that can be added for an accelerator.

    Attributes:
        nodes: How many of its nodes exist now, including away nodes.
        max_nodes: The maximum number of nodes; always more than `nodes`.
        minutes: How many minutes a new node usually takes.
    """

    nodes: int
    max_nodes: int
    minutes: float


def can_scale_up(
    state: ClusterState, accelerator: Accelerator | None, pod: Pod
) -> CanScaleUp | None:
    """Return how the accelerator's pool can grow if the pod would fit on a new node; else None.

    This assumes that a new node equals one of the accelerator's existing nodes, and runs only
    DaemonSets. It trusts the administrator about the number of GPUs, because the first nodes of a
    pool may still be starting, without allocatable GPUs, and because the administrator offers the
    larger counts on purpose. If the pool has no nodes, it trusts the administrator about all
    resources.

    Args:
        state: The known state of the cluster.
        accelerator: The pod's accelerator; None for a pod without one.
        pod: A pod that doesn't fit now.

    Raises:
        QuantityError: A request of the pod isn't a quantity. Its verdict is unknown too.
    """
    if accelerator is None or accelerator.scale_up is None:
        return None
    pool = _pool(state, accelerator)
    declared = accelerator.scale_up
    if len(pool) >= declared.max_nodes:
        return None
    wanted = {r: n for r, n in pod_requests(pod, state.rules).items() if r != accelerator.resource}
    if pool and not any(_would_hold(node, pod, wanted) for node in pool):
        return None
    return CanScaleUp(len(pool), declared.max_nodes, declared.minutes)


def _pool(state: ClusterState, accelerator: Accelerator) -> list[NodeInfo]:
    """Return the nodes that the accelerator's own selector and affinity select."""
    selecting = convert("Pod", _selecting(accelerator))
    if not isinstance(selecting, Pod):  # invalid affinity terms select nothing
        return []
    choice = node_choice(selecting.spec)
    return [node for node in state.nodes.values() if choice.matches(node.labels, node.name)]


def _selecting(accelerator: Accelerator) -> dict[str, object]:
    spec: dict[str, object] = {"nodeSelector": dict(accelerator.node_selector)}
    if accelerator.node_affinity:
        terms = {"nodeSelectorTerms": thaw(accelerator.node_affinity)}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
    return {"metadata": {"name": "any"}, "spec": spec}


def _would_hold(node: NodeInfo, pod: Pod, wanted: Amounts) -> bool:
    lasting = [taint for taint in node.taints if taint.key not in AWAY_TAINTS]
    return (
        node_choice(pod.spec).matches(node.labels, node.name)
        and untolerated(lasting, pod.spec.tolerations or ()) is None
        and all(
            amount <= node.allocatable.get(resource, 0) - node.staying_requested.get(resource, 0)
            for resource, amount in wanted.items()
            if amount > 0
        )
    )
