"""Resources that a DeviceClass serves, on nodes whose device plugins offer none of them.

There, a driver's devices decide, which we don't count; everything else must fit as on any node.
Source: `shouldDelegateResourceToDRA` in noderesources/fit.go (v1.36.2).
"""

from collections.abc import Container
from copy import copy
from typing import NamedTuple

from .filters import Filters
from .node_info import NodeInfo
from .outcome import could_hold
from .requests import is_claimable
from .state import ClusterState
from .verdict import Unknown, Why


class ByClaim(NamedTuple):
    """What drivers may serve of a pod, and where."""

    doubts: tuple[Unknown, ...] = ()
    """Why a node may have room now, or after preemption."""
    could_hold: bool = False
    """Whether a node could hold the pod once others end, or once it is back."""


def by_claim(filters: Filters) -> ByClaim:
    """Find the nodes that could hold the rest of a pod and whose drivers may serve it."""
    state = filters.state
    resources = [name for name, _ in filters.asked if _may_serve(state, name)]
    if not resources or filters.rejected is not None:
        return ByClaim()
    rest = _without(filters, resources)
    could = could_hold(rest, rest.screened())
    there = map(state.nodes.__getitem__, could.busy + could.away)
    nodes = [node for node in there if not all(map(node.allocatable.get, resources))]
    if not any(_may_have_room(rest, node) for node in nodes):
        return ByClaim((), bool(nodes))
    is_known = state.known("DeviceClass")
    why, what = (Why.DEVICE_CLAIM, resources[0]) if is_known else (Why.NOT_KNOWN, "DeviceClass")
    return ByClaim((Unknown(why, what, may_admit=True, may_refuse=False),), could_hold=True)


def judged_on_new(filters: Filters, node: NodeInfo) -> Filters:
    """Return what a node that is to come decides of a pod: not what a driver may serve there."""
    resources = [
        name
        for name, _ in filters.asked
        if not node.allocatable.get(name) and _may_serve(filters.state, name)
    ]
    return _without(filters, resources) if resources else filters


def _without(filters: Filters, resources: Container[str]) -> Filters:
    rest = copy(filters)
    rest.asked = tuple(item for item in filters.asked if item[0] not in resources)
    return rest


def _may_have_room(rest: Filters, node: NodeInfo) -> bool:
    if rest.fixed_failure(node) is not None:
        return False
    return not rest.failures(node) or node.has_below(rest.priority.value)


def _may_serve(state: ClusterState, resource: str) -> bool:
    if not state.rules.device_plugin_by_claim or not is_claimable(resource):
        return False
    if state.known("DeviceClass"):
        return resource in state.storage.device_resources
    # If a device plugin serves a resource, we assume that no device class serves it too.
    return not any(
        node.allocatable.get(resource) or node.capacity.get(resource)
        for node in state.nodes.values()
    )
