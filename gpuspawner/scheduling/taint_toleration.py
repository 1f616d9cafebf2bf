"""Cordons and taints: plugins NodeUnschedulable and TaintToleration.

Source: `Toleration.ToleratesTaint` in k8s.io/api/core/v1 (v0.36.2). tolerationSeconds is ignored.
`rules.readings` knows when Lt and Gt don't match at all.
"""

from collections.abc import Iterable

from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import Toleration

from .failures import Untolerated
from .labels import int64

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in ("Gt", "Lt"):
        mine, theirs = int64(toleration.value), int64(taint.value)
        if mine is None or theirs is None or str(theirs) != taint.value:  # "+7" and "07" are none
            return False
        return theirs > mine if toleration.operator == "Gt" else theirs < mine
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
