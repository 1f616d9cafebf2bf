"""Pools of nodes that an administrator declares to grow: ``"scale_up"`` of an accelerator.

An autoscaler acts on Pending pods alone, so a refusal would never wake it. Where a new node would
help, the pod must therefore be created, and the person be told how long that usually takes.
"""

from dataclasses import dataclass

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers import Accelerator
from gpuspawner.offers.frozen import thaw
from gpuspawner.scheduling.node_affinity import node_choice
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.outcome import AWAY_TAINTS
from gpuspawner.scheduling.requests import Amounts, pod_requests
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.taint_toleration import untolerated


@dataclass(frozen=True, slots=True)
class CanScaleUp:
    """Nodes that can still come for an accelerator.

    Attributes:
        nodes: How many of its nodes exist now, those away included.
        max_nodes: How many there can be; always more than `nodes`.
        minutes: How long a new node usually takes.
    """

    nodes: int
    max_nodes: int
    minutes: float


def can_scale_up(
    state: ClusterState, accelerator: Accelerator | None, pod: Pod
) -> CanScaleUp | None:
    """Whether a new node can still come on which the pod would fit.

    A new node is taken to be like one of the accelerator's present ones, and empty but for
    DaemonSets. Only the number of its GPUs is the administrator's word, since a pool's first nodes
    may still be starting, with none allocatable yet, and since larger counts are offered on
    purpose. Of a pool without nodes nothing else is known, so the administrator's word holds for
    all of it.

    Args:
        state: What is known of the cluster.
        accelerator: What the pod gets; None for a pod without one.
        pod: A pod that has no room now.

    Raises:
        QuantityError: The pod's requests are no quantities; such a pod has no verdict either.
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
    """The nodes that the accelerator's own selector and affinity select."""
    anyone = convert("Pod", _selecting(accelerator))
    if not isinstance(anyone, Pod):  # terms that no API server would take select nothing
        return []
    choice = node_choice(anyone.spec)
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
