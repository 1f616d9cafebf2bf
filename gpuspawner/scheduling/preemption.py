"""Finds out whether the plugin DefaultPreemption (v1.36.2) can make room on any node.

It doesn't predict the victims: they depend on disruption budgets and on chance.
"""

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from .certainty import uncertain
from .failures import resolvable
from .filters import Filters
from .node_info import NodeInfo
from .verdict import NO_VICTIMS, NOT_HELPFUL, Unknown, Why, histogram

HIGHEST = 1_000_000_000
"""The highest value of a PriorityClass that a user can create (`HighestUserDefinablePriority`)."""


class Preemption(msgspec.Struct, frozen=True):
    """A node where preemption helps, or the text why it doesn't help."""

    node: str | None
    text: str
    """The scheduler's text; empty if there is a node."""
    doubt: Unknown | None = None
    """Why this result is uncertain."""
    seconds: int = 0
    """How long the victims may take to end there; on another node it may be longer."""


def preempt(filters: Filters, freeable: Collection[str]) -> Preemption:
    """Find a node where the pod fits without the pods of lower priority.

    `freeable` are the nodes where only pods, of any priority, exclude the pod.
    """
    state, priority = filters.state, filters.priority.value
    if not filters.priority.preempts:
        return Preemption(None, "not eligible due to preemptionPolicy=Never.")
    if _victims_are_ending(filters, freeable):
        return Preemption(None, "not eligible due to a terminating pod on the nominated node.")
    nodes = state.nodes
    promising = sorted(name for name in freeable if nodes[name].has_below(priority))
    reasons = Counter({NO_VICTIMS: len(freeable) - len(promising)})
    perhaps: Preemption | None = None
    for name in promising:
        node = nodes[name]
        victims = node.below(priority)
        left = filters.failures(node, victims)
        if not left:
            doubt, seconds = uncertain(state, node), max(it.grace for it in victims.pods)
            if doubt is None:
                return Preemption(name, "", seconds=seconds)
            perhaps = perhaps or Preemption(name, "", doubt, seconds)
        reasons.update(fact.reason for fact in left)
    if perhaps is not None:
        return perhaps
    text = histogram(len(nodes), {**reasons, NOT_HELPFUL: len(nodes) - len(freeable)})
    return Preemption(None, text, _unknown_priority(filters, freeable))


def may_help(filters: Filters) -> bool:
    """Whether `preempt` finds a node, or a doubt, if the pod fits nowhere now."""
    own = filters.priority
    if not own.preempts:
        return False
    values = (own.value,) if own.known else (own.value, HIGHEST)
    return any(True for it in values for _ in helped(filters, it))


def helped(filters: Filters, priority: int) -> Iterator[NodeInfo]:
    """Find the nodes that could hold the pod if the pods below a priority ended.

    Call it only if no node can hold the pod now.
    """
    names = filters.names
    for node in filters.screened().passing:
        if (
            node.has_below(priority)
            and (names is None or node.name in names)
            and not filters.failures(node, node.below(priority))
            and resolvable(filters.failures(node))
        ):
            yield node


def _unknown_priority(filters: Filters, freeable: Collection[str]) -> Unknown | None:
    """Return a doubt if the unknown priority may be high enough to preempt."""
    if filters.priority.known:
        return None
    for node in map(filters.state.nodes.__getitem__, freeable):
        if not filters.failures(node, node.below(HIGHEST)):
            return Unknown(Why.NOT_KNOWN, "PriorityClass", may_admit=True, may_refuse=False)
    return None


def _victims_are_ending(filters: Filters, freeable: Collection[str]) -> bool:
    nominated = filters.pod.status.nominated_node_name
    node = filters.state.nodes.get(nominated) if nominated else None
    if node is None or nominated not in freeable:
        return False
    victims = node.below(filters.priority.value).pods
    return any(pod.preempted and pod.terminating for pod in victims)
