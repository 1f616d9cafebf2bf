"""The scheduler's message, word for word (v1.36).

Sources: `FitError.Error` in framework/types.go, `RunPostFilterPlugins`, and the PostFilter parts of
DynamicResources and DefaultPreemption. The condition PodScheduled of a pod that waits has it whole.
"""

from collections import Counter
from collections.abc import Mapping

from .failures import Failures, Rejected

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"


def fit_error(nodes: int, failures: Mapping[str, Failures]) -> str:
    """Write why no node fits, without what preemption has to say.

    Args:
        nodes: how many nodes there are.
        failures: of each node.
    """
    if not nodes:
        return NO_NODES
    rejected = next(iter(failures.values()), ())
    if rejected and isinstance(rejected[0], Rejected):
        return f"0/{nodes} nodes are available: {rejected[0].reason}."
    reasons: Counter[str] = Counter()
    for facts, number in Counter(failures.values()).items():
        for fact in facts:
            reasons[fact.reason] += number
    return histogram(nodes, reasons)


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


def condition(error: str, preemption: str) -> str:
    """Join both parts as the pod's condition has them.

    Args:
        error: why no node fits.
        preemption: why preemption would not help, or "" where it does.
    """
    if error == NO_NODES or not preemption:
        return error
    return f"{error} {NO_CLAIMS}, preemption: {preemption}"
