"""Where a pod could run if others ended, whether or not it fits somewhere now."""

from collections.abc import Iterable

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError

from .filters import Filters
from .given import PlainOrClaim, parsed_claims
from .labels import SelectorError
from .outcome import could_hold
from .state import ClusterState


def reach(state: ClusterState, pod: Pod, new_claims: Iterable[PlainOrClaim] = ()) -> frozenset[str]:
    """Return the nodes that could hold a pod once other pods end; none if it can't be understood.

    A verdict names these only if the pod fits nowhere now (`Verdict.busy`). They change only with
    `ClusterState.lasting_version`.
    """
    claims = parsed_claims(new_claims)
    if isinstance(claims, str):
        return frozenset()
    try:
        filters = Filters(state, pod, claims)
    except (QuantityError, SelectorError):
        return frozenset()
    if filters.rejected is not None:
        return frozenset()
    return frozenset(could_hold(filters).busy)
