"""The scheduler's fit error, word for word (v1.36).

Sources: `FitError.Error` in framework/types.go, `RunPostFilterPlugins`, and the PostFilter parts of
DynamicResources and DefaultPreemption. The PodScheduled condition of a pending pod shows all of it.
"""

from collections.abc import Mapping

from .failures import Rejected

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"


def message(nodes: int, rejected: Rejected | None, reasons: Mapping[str, int]) -> str:
    """Return the text why no node fits, without the part about preemption.

    `rejected` is set if one reason holds for all nodes; else `reasons` counts the nodes for each.
    """
    if not nodes:
        return NO_NODES
    if rejected is not None:
        return f"0/{nodes} nodes are available: {rejected.reason}."
    return histogram(nodes, reasons)


def condition_message(error: str, rejected: Rejected | None, preemption: str) -> str:
    """Add the part about preemption to what `message` returned."""
    if not error or error == NO_NODES:
        return error
    if rejected is not None:
        # After a rejection, DynamicResources didn't run its PreFilter, so its PostFilter fails.
        return f"{error} not found"
    return f"{error} {NO_CLAIMS}, preemption: {preemption}" if preemption else error


def histogram(nodes: int, reasons: Mapping[str, int]) -> str:
    """Return the text that counts the nodes for each reason, sorted as text."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(parts)}." if parts else "")
