"""Whether room could be made by ending pods of lower priority: plugin DefaultPreemption (v1.36.2).

Only whether it can, not whom it would hit: that depends on disruption budgets and on chance, the
existence of a node does not.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from .certainty import uncertain
from .filters import Filters, Pods
from .fit_error import NO_VICTIMS, preemption_text
from .node_info import NodeInfo
from .unknowns import Unknown, Why

HIGHEST = 1_000_000_000
"""No PriorityClass of a cluster's own is above it (`HighestUserDefinablePriority`)."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """The result: a node where room can be made, or why there is none."""

    node: str | None
    text: str
    """The scheduler's text; empty with a node."""
    doubt: Unknown | None = None
    """Why it is not certain that room can be made, or that there is none to be made."""


def preempt(filters: Filters, freeable: Collection[str]) -> Preemption:
    """Look for a node where the pod fits once all pods of lower priority are gone.

    Args:
        filters: the rules for the pod.
        freeable: the nodes where only pods are in the way, whatever their priority.
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
    text = preemption_text(len(state.nodes), reasons, len(freeable))
    return Preemption(None, text, _unknown_priority(filters, freeable))


def _unknown_priority(filters: Filters, freeable: Collection[str]) -> Unknown | None:
    """Return the doubt that a priority which is not known may be high enough to make room."""
    if filters.priority.known:
        return None
    for node in map(filters.state.nodes.__getitem__, freeable):
        if not filters.failures_without(node, lower(node, HIGHEST)):
            return Unknown(Why.NOT_KNOWN, "PriorityClass", may_admit=True, may_refuse=False)
    return None


def lower(node: NodeInfo, priority: int) -> Pods:
    """Return the pods of a node that have a lower priority."""
    return tuple(pod for pod in node.pods.values() if pod.priority < priority)


def _victims_are_ending(filters: Filters, freeable: Collection[str]) -> bool:
    """Tell whether the pod waits for the end of pods that it has preempted."""
    nominated = filters.pod.status.nominated_node_name
    node = filters.state.nodes.get(nominated) if nominated else None
    if node is None or nominated not in freeable:
        return False
    return any(pod.preempted and pod.terminating for pod in lower(node, filters.priority.value))
