"""Finds the nodes that could hold a pod after a change: busy or away nodes.

It also tells from which nodes the pod's volumes can be reached.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gpuspawner.kube.objects import UNDECODABLE, Manifest, strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.storage import PersistentVolumeClaim

from . import node_ports, volume_restrictions
from .certainty import unknown_storage
from .device_claims import by_claim
from .failures import Cordoned, Failure, NoStorage, NoVolume, Untolerated
from .filters import Filters
from .labels import SelectorError
from .node_info import NodeInfo, PodInfo
from .pod_claims import without_volumes
from .requests import PODS, Amounts, is_device
from .state import ClusterState
from .static_filters import Screened
from .taint_toleration import untolerated


class CouldHold(msgspec.Struct, frozen=True):
    """The names of nodes that could hold the pod after a change."""

    busy: tuple[str, ...]
    """Nodes that fit once other pods end (with affinity: once matching pods run)."""
    away: tuple[str, ...]
    """Nodes that also need to come back: uncordoned, ready, with healthy devices and drivers."""


def could_hold(filters: Filters) -> CouldHold:
    """Find the nodes that could hold the pod after a change, also those whose drivers may."""
    busy: list[str] = []
    gone: list[str] = []
    for it in (filters, *by_claim(filters)):
        screened = it.screened()
        able = [n for n in screened.able if would_hold(it, n, n.allocatable)]
        unready = {n.name for n in able if it.limits.missing_driver(n)}
        busy += [n.name for n in able if n.name not in unready]
        back = [*screened.weak, *away(it, screened)]
        gone += [*unready, *(n.name for n in back if would_hold(it, n, healthy(n)))]
    return CouldHold(tuple(sorted(busy)), tuple(sorted(set(gone).difference(busy))))


def reach(state: ClusterState, pod: Pod, new_claims: Iterable[Manifest] = ()) -> frozenset[str]:
    """Return the nodes that could hold a pod once other pods end; none if it can't be understood.

    A verdict names these only if the pod fits nowhere now (`Verdict.busy`). They change only with
    `ClusterState.lasting_version`.
    """
    filters = _lasting_filters(state, pod, new_claims)
    return frozenset(could_hold(filters).busy) if filters else frozenset()


def reaching_volumes(
    state: ClusterState, pod: Pod, new_claims: Iterable[Manifest] = ()
) -> frozenset[str]:
    """Return the nodes that can use a pod's volumes, whatever else keeps it off; as `reach`."""
    filters = _lasting_filters(state, pod, new_claims)
    nodes = state.nodes.values() if filters else ()
    return frozenset(it.name for it in nodes if filters and not filters.binding.failures(it))


def _lasting_filters(
    state: ClusterState, pod: Pod, new_claims: Iterable[Manifest]
) -> Filters | None:
    """Return what excludes nodes; None if it excludes all, or if the pod can't be understood."""
    try:
        claims = [strict_convert(it, PersistentVolumeClaim) for it in new_claims]
    except UNDECODABLE:
        return None
    try:
        filters = Filters(state, pod, claims)
        if filters.rejected is not None or unknown_storage(state, pod, claims):
            # A claim may soon be made or bound. Whom it refuses for good doesn't wait in line.
            filters = Filters(state, without_volumes(pod))
    except (QuantityError, SelectorError):
        return None
    return filters if filters.rejected is None else None


def away(filters: Filters, screened: Screened) -> list[NodeInfo]:
    """Find the nodes that pass the static rules except for a cordon or a temporary taint."""
    return [
        node
        for (failure,), nodes in screened.excluded.items()
        if _is_temporary(failure, nodes[0])
        for node in nodes
        if _selected(filters, node)
    ]


def would_hold(filters: Filters, node: NodeInfo, allocatable: Amounts) -> bool:
    """Return whether the pod would fit beside the pods that never end, by all but static rules."""
    if filters.served and any(map(allocatable.get, filters.served)):
        return False
    staying = node.staying_requested
    for resource, amount in filters.asked:
        if amount > allocatable.get(resource, 0) - staying.get(resource, 0):
            return False
    if node.staying + 1 > allocatable.get(PODS, 0):
        return False
    used = (port for pod in _staying(node.ported) for port in pod.ports)
    if filters.ports and node_ports.are_taken(filters.ports, used):
        return False
    if filters.disks and volume_restrictions.in_use(filters.disks, _staying(node.claimants)):
        return False
    if filters.places_volumes and _never_reaches(filters, node):
        return False
    if filters.spread is not None and filters.spread.missing_label(node):
        return False
    return filters.nearness is None or not filters.nearness.missing_label(node)


def _never_reaches(filters: Filters, node: NodeInfo) -> bool:
    failures = filters.binding.failures(node)
    return filters.limits.beyond(node) or not all(_passes(filters, it) for it in failures)


def _passes(filters: Filters, failure: Failure) -> bool:
    """Return whether a claim waits for its volume, made for another node, or for others' storage.

    A CSIStorageCapacity tells what is left, not what there is. Ephemeral volumes give theirs back.
    """
    if isinstance(failure, NoStorage):
        return failure.claim in filters.claims.ephemeral
    return isinstance(failure, NoVolume) and failure.claim in filters.claims.being_made


def _staying(index: dict[str, PodInfo]) -> Iterator[PodInfo]:
    return (pod for pod in index.values() if pod.staying)


def _is_temporary(fact: object, node: NodeInfo) -> bool:
    if isinstance(fact, Untolerated):
        return all(taint.key != fact.key for taint in node.lasting_taints)
    return isinstance(fact, Cordoned)


def _selected(filters: Filters, node: NodeInfo) -> bool:
    """Return whether a node passes all static rules except temporary taints and cordons."""
    spec = filters.pod.spec
    if spec.node_name and spec.node_name != node.name:
        return False
    if untolerated(node.lasting_taints, spec.tolerations or ()) is not None:
        return False
    return filters.choice.matches(node.labels, node.name)


def healthy(node: NodeInfo) -> Amounts:
    """Return the allocatable resources of a node as if all its devices were healthy."""
    known = node.allocatable
    devices = {resource: it for resource, it in node.capacity.items() if is_device(resource)}
    return {**known, **{it: max(amount, known.get(it, 0)) for it, amount in devices.items()}}
