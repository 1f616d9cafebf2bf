"""Resources that a DeviceClass serves, on nodes whose device plugins offer none of them.

There, a driver's devices decide, which we don't count; everything else must fit as on any node.
Source: `shouldDelegateResourceToDRA` in noderesources/fit.go (v1.36.2).
"""

from copy import copy

from .filters import Filters
from .node_info import NodeInfo
from .node_resources_fit import fits
from .preemption import preempt
from .requests import is_claimable
from .state import ClusterState
from .verdict import Unknown, Why


def by_claim(filters: Filters) -> list[Filters]:
    """Return what else a pod asks for: once for all nodes whose drivers may serve the same of it.

    Those are the nodes where nothing of `Filters.served` is allocatable.
    """
    state, served = filters.state, _served(filters)
    if not served or filters.rejected is not None:
        return []
    kinds = (kind.nodes[0].allocatable for kind in state.kinds)
    sets = dict.fromkeys(tuple(it for it in served if not has.get(it)) for has in kinds)
    return [_without(filters, them) for them in sets if them]


def judged_on(filters: Filters, node: NodeInfo) -> Filters:
    """Return what a node decides of a pod itself: not what a driver may serve there."""
    served = tuple(it for it in _served(filters) if not node.allocatable.get(it))
    return _without(filters, served) if served else filters


def by_claim_doubts(filters: Filters) -> tuple[Unknown, ...]:
    """Return why a node whose drivers may serve a refused pod may have room, or make it."""
    rest = next(filter(_may_have_room, by_claim(filters)), None)
    if rest is None:
        return ()
    is_known, name = filters.state.known("DeviceClass"), rest.served[0]
    why, what = (Why.DEVICE_CLAIM, name) if is_known else (Why.NOT_KNOWN, "DeviceClass")
    return (Unknown(why, what, may_admit=True, may_refuse=False),)


def may_serve(state: ClusterState, resource: str) -> bool:
    """Return whether a driver may serve a resource, by a DeviceClass.

    They do since 1.34; while the gate was off by default, before 1.36, the API server dropped the
    class's field.
    """
    if state.rules.minor < 34 or not is_claimable(resource):
        return False
    if state.known("DeviceClass"):
        return resource in state.storage.device_resources
    # If a device plugin serves a resource, we assume that no device class serves it too.
    kinds = (kind.nodes[0] for kind in state.kinds)
    return not any(it.allocatable.get(resource) or it.capacity.get(resource) for it in kinds)


def _served(filters: Filters) -> list[str]:
    return [name for name, _ in filters.asked if may_serve(filters.state, name)]


def _without(filters: Filters, served: tuple[str, ...]) -> Filters:
    rest = copy(filters)
    rest.asked = tuple(item for item in filters.asked if item[0] not in served)
    rest.served = served
    return rest


def _may_have_room(rest: Filters) -> bool:
    nodes = [it for it in rest.screened().able if not any(map(it.allocatable.get, rest.served))]
    if any(fits(rest.asked, it.free) and rest.admits(it) for it in nodes):
        return True
    made = preempt(rest, [it.name for it in nodes])
    return made.node is not None or made.doubt is not None
