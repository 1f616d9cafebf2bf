"""What would have to change so that a pod that fits nowhere fits: busy, away or impossible."""

from dataclasses import dataclass

from gpuspawner.kube.nodes import Taint

from . import node_ports, volume_restrictions
from .failures import Cordoned, Untolerated
from .filters import Filters
from .node_info import NodeInfo, PodInfo
from .requests import PODS, Amounts, is_extended
from .static_filters import Screen
from .taint_toleration import untolerated

AWAY_TAINTS = frozenset(
    {
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/unregistered",
    }
)
"""Taints that come and go with a node's health or its administrator's work on it."""


@dataclass(frozen=True, slots=True)
class CouldHold:
    """Nodes that could hold the pod after a change, by name."""

    busy: tuple[str, ...]
    """If pods that can end had ended (for affinity: if the right pods were there)."""
    away: tuple[str, ...]
    """If they were back as well: uncordoned, ready, their devices healthy."""


def could_hold(filters: Filters, screen: Screen) -> CouldHold:
    """Find the nodes that could hold the pod after a change."""
    busy = [n.name for n in screen.able if _holds(filters, n, n.allocatable)]
    gone = [*screen.weak, *away(filters, screen)]
    back = [node.name for node in gone if _holds(filters, node, healthy(node))]
    return CouldHold(tuple(busy), tuple(sorted(back)))


def away(filters: Filters, screen: Screen) -> list[NodeInfo]:
    """Find the nodes that pass the screen but for a cordon or a taint that comes and goes."""
    passing = {facts for facts in screen.facts if _passes_by(facts[0])}
    if not passing:
        return []
    nodes = filters.state.nodes
    return [
        nodes[name]
        for name, facts in screen.failing.items()
        if facts in passing and _selected(filters, nodes[name])
    ]


def _holds(filters: Filters, node: NodeInfo, allocatable: Amounts) -> bool:
    """Tell whether the pod would fit beside the pods that never end."""
    staying = node.staying_requested
    for resource, amount in filters.asked:
        if amount > allocatable.get(resource, 0) - staying.get(resource, 0):
            return False
    if node.staying + 1 > allocatable.get(PODS, 0):
        return False
    if filters.ports and node_ports.taken(filters.ports, _staying(node.ported)) is not None:
        return False
    if (
        filters.disks
        and volume_restrictions.in_use(filters.disks, _staying(node.claimants)) is not None
    ):
        return False
    if filters.pod.spec.volumes and _never_reaches(filters, node):
        return False
    if filters.spread is not None and filters.spread.missing_label(node):
        return False
    return filters.nearness is None or not filters.nearness.missing_label(node)


def _never_reaches(filters: Filters, node: NodeInfo) -> bool:
    """Tell whether the pod's volumes keep it from a node, whatever becomes of other pods."""
    return bool(filters.limits.beyond(node) or filters.binding.failures(node))


def _staying(index: dict[str, PodInfo]) -> list[PodInfo]:
    return [pod for pod in index.values() if pod.staying]


def _passes_by(fact: object) -> bool:
    return isinstance(fact, Cordoned) or (isinstance(fact, Untolerated) and fact.key in AWAY_TAINTS)


def _selected(filters: Filters, node: NodeInfo) -> bool:
    """Tell whether the node passes all that does not come and go."""
    spec = filters.pod.spec
    if spec.node_name and spec.node_name != node.name:
        return False
    lasting: list[Taint] = [taint for taint in node.taints if taint.key not in AWAY_TAINTS]
    if untolerated(lasting, spec.tolerations or ()) is not None:
        return False
    return filters.choice.matches(node.labels, node.name)


def healthy(node: NodeInfo) -> Amounts:
    """Return what would be allocatable with all devices healthy."""
    amounts = dict(node.allocatable)
    for resource, amount in node.capacity.items():
        if is_extended(resource) and amount > amounts.get(resource, 0):
            amounts[resource] = amount
    return amounts
