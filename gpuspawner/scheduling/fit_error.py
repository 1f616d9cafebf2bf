"""The scheduler's fit error, word for word (v1.36).

Sources: `FitError.Error` in framework/types.go, `RunPostFilterPlugins`, and the PostFilter parts of
DynamicResources and DefaultPreemption. The PodScheduled condition of a pending pod shows all of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from .failures import Failures, Rejected

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"


def fit_error(nodes: int, rejected: Rejected | None, reasons: Mapping[str, int]) -> str:
    """Return the text why no node fits, without the part about preemption.

    Args:
        nodes: the number of nodes.
        rejected: why the pod can't run on any node, if one reason holds for all.
        reasons: the number of nodes for each reason.
    """
    if not nodes:
        return NO_NODES
    if rejected is not None:
        return f"0/{nodes} nodes are available: {rejected.reason}."
    return histogram(nodes, reasons)


def count_reasons(failures: Iterable[Failures]) -> Counter[str]:
    """Count the nodes for each reason."""
    return Counter(fact.reason for facts in failures for fact in facts)


def histogram(nodes: int, reasons: Mapping[str, int]) -> str:
    """Return the text that counts each reason, sorted as text."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(parts)}." if parts else "")


def preemption_text(nodes: int, reasons: Mapping[str, int], tried: int) -> str:
    """Return the text why preemption wouldn't help.

    Args:
        nodes: the number of nodes.
        reasons: how often each reason occurs on the nodes that preemption tried.
        tried: the number of nodes that preemption tried.
    """
    return histogram(nodes, {**reasons, NOT_HELPFUL: nodes - tried})


def condition(error: str, rejected: Rejected | None, preemption: str) -> str:
    """Join all parts as in the pod's condition.

    Args:
        error: why no node fits.
        rejected: why the pod can't run on any node, if one reason holds for all.
        preemption: why preemption wouldn't help, or "" if it helps.
    """
    if error == NO_NODES:
        return error
    if rejected is not None:
        # After a rejection, DynamicResources didn't run its PreFilter, so its PostFilter fails.
        return f"{error} not found"
    return f"{error} {NO_CLAIMS}, preemption: {preemption}" if preemption else error
