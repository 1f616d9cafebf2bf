"""Cordons and taints: plugins NodeUnschedulable and TaintToleration.

Source: `Toleration.ToleratesTaint` in k8s.io/api/core/v1 (v0.36.2). tolerationSeconds is ignored.
The operators Lt and Gt never match, because their feature gate is off by default.
"""

from collections.abc import Iterable

from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import Toleration

from .failures import Untolerated

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def any_tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any of the tolerations tolerates a taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Untolerated | None:
    """Return the first taint that no toleration tolerates; None if all are tolerated."""
    for taint in taints:
        if not any_tolerates(tolerations, taint):
            return Untolerated(taint.key, taint.value, taint.effect)
    return None
