"""What can make room for a refused pod: preemption, or a change of pods and nodes.

`preempt` finds out whether the plugin DefaultPreemption (v1.36.2) can help on any node. It doesn't
predict the victims: they depend on disruption budgets and on chance. `could_hold` finds the nodes
that are only busy or away.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from gpuspawner.kube.nodes import Taint

from . import node_ports, volume_restrictions
from .certainty import uncertain
from .failures import Cordoned, Untolerated
from .filters import Filters, Pods
from .node_info import NodeInfo, PodInfo
from .requests import PODS, Amounts, is_extended
from .static_filters import Screen
from .taint_toleration import untolerated
from .verdict import NO_VICTIMS, NOT_HELPFUL, Unknown, Why, histogram

HIGHEST = 1_000_000_000
"""The highest value of a PriorityClass that a user can create (`HighestUserDefinablePriority`)."""

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
"""Temporary taints: they depend on the node's health, or on maintenance."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A node where preemption helps, or the text why it doesn't help."""

    node: str | None
    text: str
    """The scheduler's text; empty if there is a node."""
    doubt: Unknown | None = None
    """Why this result is uncertain."""


def preempt(filters: Filters, freeable: Collection[str]) -> Preemption:
    """Find a node where the pod fits without the pods of lower priority.

    `freeable` are the nodes where only pods, of any priority, exclude the pod.
    """
    state, priority = filters.state, filters.priority.value
    if not filters.priority.preempts:
        return Preemption(None, "not eligible due to preemptionPolicy=Never.")
    if _victims_are_ending(filters, freeable):
        return Preemption(None, "not eligible due to a terminating pod on the nominated node.")
    reasons: Counter[str] = Counter()
    perhaps: Preemption | None = None
    for name in freeable:
        node = state.nodes[name]
        if node.lowest is None or node.lowest >= priority:
            reasons[NO_VICTIMS] += 1
            continue
        left = filters.failures_without(node, lower(node, priority))
        if not left:
            doubt = uncertain(state, node)
            if doubt is None:
                return Preemption(name, "")
            perhaps = perhaps or Preemption(name, "", doubt)
        reasons.update(fact.reason for fact in left)
    if perhaps is not None:
        return perhaps
    nodes = len(state.nodes)
    text = histogram(nodes, {**reasons, NOT_HELPFUL: nodes - len(freeable)})
    return Preemption(None, text, _unknown_priority(filters, freeable))


def _unknown_priority(filters: Filters, freeable: Collection[str]) -> Unknown | None:
    """Return a doubt if the unknown priority may be high enough to preempt."""
    if filters.priority.known:
        return None
    for node in map(filters.state.nodes.__getitem__, freeable):
        if not filters.failures_without(node, lower(node, HIGHEST)):
            return Unknown(Why.NOT_KNOWN, "PriorityClass", may_admit=True, may_refuse=False)
    return None


def lower(node: NodeInfo, priority: int) -> Pods:
    """Return the pods of a node with a lower priority."""
    return tuple(pod for pod in node.pods.values() if pod.priority < priority)


def _victims_are_ending(filters: Filters, freeable: Collection[str]) -> bool:
    nominated = filters.pod.status.nominated_node_name
    node = filters.state.nodes.get(nominated) if nominated else None
    if node is None or nominated not in freeable:
        return False
    return any(pod.preempted and pod.terminating for pod in lower(node, filters.priority.value))


@dataclass(frozen=True, slots=True)
class CouldHold:
    """The names of nodes that could hold the pod after a change."""

    busy: tuple[str, ...]
    """Nodes that fit once other pods end (with affinity: once matching pods run)."""
    away: tuple[str, ...]
    """Nodes that also need to come back: uncordoned, ready, their devices healthy."""


def could_hold(filters: Filters, screen: Screen) -> CouldHold:
    """Find the nodes that could hold the pod after a change."""
    busy = [n.name for n in screen.able if _holds(filters, n, n.allocatable)]
    gone = [*screen.weak, *away(filters, screen)]
    back = [node.name for node in gone if _holds(filters, node, healthy(node))]
    return CouldHold(tuple(busy), tuple(sorted(back)))


def away(filters: Filters, screen: Screen) -> list[NodeInfo]:
    """Find the nodes that pass the screen except for a cordon or a temporary taint."""
    temporary = {facts for facts in screen.facts if _is_temporary(facts[0])}
    if not temporary:
        return []
    nodes = filters.state.nodes
    return [
        nodes[name]
        for name, facts in screen.failing.items()
        if facts in temporary and _selected(filters, nodes[name])
    ]


def _holds(filters: Filters, node: NodeInfo, allocatable: Amounts) -> bool:
    """Return whether the pod would fit beside the pods that never end."""
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
    return bool(filters.limits.beyond(node) or filters.binding.failures(node))


def _staying(index: dict[str, PodInfo]) -> list[PodInfo]:
    return [pod for pod in index.values() if pod.staying]


def _is_temporary(fact: object) -> bool:
    return isinstance(fact, Cordoned) or (isinstance(fact, Untolerated) and fact.key in AWAY_TAINTS)


def _selected(filters: Filters, node: NodeInfo) -> bool:
    """Return whether a node passes all static rules except temporary taints and cordons."""
    spec = filters.pod.spec
    if spec.node_name and spec.node_name != node.name:
        return False
    lasting: list[Taint] = [taint for taint in node.taints if taint.key not in AWAY_TAINTS]
    if untolerated(lasting, spec.tolerations or ()) is not None:
        return False
    return filters.choice.matches(node.labels, node.name)


def healthy(node: NodeInfo) -> Amounts:
    """Return the allocatable resources of a node as if all its devices were healthy."""
    amounts = dict(node.allocatable)
    for resource, amount in node.capacity.items():
        if is_extended(resource) and amount > amounts.get(resource, 0):
            amounts[resource] = amount
    return amounts
