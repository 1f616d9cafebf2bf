"""Where a pod could run if others ended, and from where its volumes can be reached."""

from collections.abc import Iterable

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError

from .certainty import unknown_storage
from .could_hold import could_hold
from .filters import Filters
from .labels import SelectorError
from .parsed_input import PlainOrClaim, parsed_claims
from .pod_claims import without_volumes
from .state import ClusterState


def reach(state: ClusterState, pod: Pod, new_claims: Iterable[PlainOrClaim] = ()) -> frozenset[str]:
    """Return the nodes that could hold a pod once other pods end; none if it can't be understood.

    A verdict names these only if the pod fits nowhere now (`Verdict.busy`). They change only with
    `ClusterState.lasting_version`.
    """
    filters = _filters(state, pod, new_claims)
    return frozenset(could_hold(filters).busy) if filters else frozenset()


def reaching_volumes(
    state: ClusterState, pod: Pod, new_claims: Iterable[PlainOrClaim] = ()
) -> frozenset[str]:
    """Return the nodes that can use a pod's volumes, whatever else keeps it off; as `reach`."""
    filters = _filters(state, pod, new_claims)
    nodes = state.nodes.values() if filters else ()
    return frozenset(it.name for it in nodes if filters and not filters.binding.failures(it))


def _filters(state: ClusterState, pod: Pod, new_claims: Iterable[PlainOrClaim]) -> Filters | None:
    """Return what excludes nodes; None if it excludes all, or if the pod can't be understood."""
    claims = parsed_claims(new_claims)
    if isinstance(claims, str):
        return None
    try:
        filters = Filters(state, pod, claims)
        if filters.rejected is not None or unknown_storage(state, pod, claims):
            # A claim may soon be made or bound. Whom it refuses for good doesn't wait in line.
            filters = Filters(state, without_volumes(pod))
    except (QuantityError, SelectorError):
        return None
    return filters if filters.rejected is None else None
