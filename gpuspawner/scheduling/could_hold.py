"""Finds the nodes that could hold a refused pod after a change: busy or away nodes."""

from collections.abc import Iterator

import msgspec

from . import node_ports, volume_restrictions
from .device_claims import by_claim
from .failures import Cordoned, Failure, NoStorage, NoVolume, Untolerated
from .filters import Filters
from .node_info import NodeInfo, PodInfo
from .requests import PODS, Amounts, is_device
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
