"""Where a pod could run if others ended, whether or not it fits somewhere now."""

from collections.abc import Iterable

from gpuspawner.kube.objects import UNDECODABLE, Manifest, strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.storage import PersistentVolumeClaim

from .filters import Filters
from .labels import SelectorError
from .outcome import could_hold
from .state import ClusterState


def reach(state: ClusterState, pod: Pod, new_claims: Iterable[Manifest] = ()) -> frozenset[str]:
    """Return the nodes that could hold a pod once other pods end; none if it can't be understood.

    A verdict names these only if the pod fits nowhere now (`Verdict.busy`).
    """
    try:
        claims = [strict_convert(it, PersistentVolumeClaim) for it in new_claims]
        filters = Filters(state, pod, claims)
    except (*UNDECODABLE, QuantityError, SelectorError):
        return frozenset()
    if filters.rejected is not None:
        return frozenset()
    return frozenset(could_hold(filters, filters.screen()).busy)
