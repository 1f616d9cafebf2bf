"""The scheduler's message, word for word (v1.36).

Sources: `FitError.Error` in framework/types.go, `RunPostFilterPlugins`, and the PostFilter parts of
DynamicResources and DefaultPreemption. The condition PodScheduled of a pod that waits has it whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from .failures import Failures, Rejected

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"


def fit_error(nodes: int, rejected: Rejected | None, reasons: Mapping[str, int]) -> str:
    """Write why no node fits, without what preemption has to say.

    Args:
        nodes: how many nodes there are.
        rejected: what keeps the pod from every node alike, if anything does.
        reasons: how many nodes each reason is true of.
    """
    if not nodes:
        return NO_NODES
    if rejected is not None:
        return f"0/{nodes} nodes are available: {rejected.reason}."
    return histogram(nodes, reasons)


def count_reasons(failures: Iterable[Failures]) -> Counter[str]:
    """Count how many nodes each reason is true of."""
    return Counter(fact.reason for facts in failures for fact in facts)


def histogram(nodes: int, reasons: Mapping[str, int]) -> str:
    """Write how often each reason occurs, sorted as text."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(parts)}." if parts else "")


def preemption_text(nodes: int, reasons: Mapping[str, int], tried: int) -> str:
    """Write why preemption would not help.

    Args:
        nodes: how many nodes there are.
        reasons: how often each reason occurs on the nodes that were tried.
        tried: how many nodes that were.
    """
    return histogram(nodes, {**reasons, NOT_HELPFUL: nodes - tried})


def condition(error: str, rejected: Rejected | None, preemption: str) -> str:
    """Join all parts as the pod's condition has them.

    Args:
        error: why no node fits.
        rejected: what keeps the pod from every node alike, if anything does.
        preemption: why preemption would not help, or "" where it does.
    """
    if error == NO_NODES:
        return error
    if rejected is not None:
        # DynamicResources had no turn before, and stumbles over that.
        return f"{error} not found"
    return f"{error} {NO_CLAIMS}, preemption: {preemption}" if preemption else error
