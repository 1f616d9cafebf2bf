"""Tells nodes that are still starting from those that are ready.

A new node is not ready for some seconds, and its device plugin reports its GPUs only later. Cluster
Autoscaler calls such a node unready too (``processors/customresources/gpu_processor.go``).
"""

import re
from datetime import UTC, datetime, timedelta

from gpuspawner.offers.vendors import DISCOVERED, INSTANCE_TYPE
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import is_device
from gpuspawner.scheduling.temporary_taints import LEAVING

# Cluster Autoscaler gives a node up after this time (--max-node-provision-time).
STARTS_WITHIN = timedelta(minutes=15)

_LABELS = ("accelerator", "gpu.present")
"""The ends of labels of nodes with GPUs: ``cloud.google.com/gke-accelerator``, for example."""

# Machines with accelerators of Amazon, IBM, Azure, Google and Alibaba, whose nodes may have no
# other sign; Oracle, DigitalOcean, Akamai, Nebius and Exoscale say what they are.
_FAMILIES = re.compile(
    r"(?:[gp][rx]?[2-9][a-z]*|(?:inf|trn|dl)[0-9])[a-z0-9-]*\.|Standard_N[CDGV]|[ag][234]-"
    r"|ecs\.\w*gn[0-9]|.*(?:gpu|GPU)"
)


def age(node: NodeInfo, now: datetime | None = None) -> timedelta | None:
    """Return how long a node has existed; None if it doesn't say."""
    created = node.node.metadata.creation_timestamp if node.node else ""
    try:
        return (now or datetime.now(UTC)) - datetime.fromisoformat(created)
    except (ValueError, TypeError):  # no time, or a time without a zone
        return None


def is_young(node: NodeInfo, now: datetime | None = None) -> bool:
    """Return whether a node may still be starting, by its age."""
    old = age(node, now)
    return old is not None and old <= STARTS_WITHIN


def is_leaving(node: NodeInfo) -> bool:
    """Return whether a node is about to be deleted."""
    return any(taint.key in LEAVING for taint in node.taints)


def is_starting(node: NodeInfo, filters: Filters, now: datetime | None = None) -> bool:
    """Return whether a young node isn't ready, or lacks a device, its label or a driver so far."""
    if not is_young(node, now) or is_leaving(node):
        return False
    if node.node is not None and node.node.spec.unschedulable:
        return False
    is_away = node.lasting_taints != node.taints
    lacks_driver = filters.limits.missing_driver(node) is not None
    return is_away or lacks_driver or _lacks_devices(node, filters) or _lacks_labels(node, filters)


def _lacks_labels(node: NodeInfo, filters: Filters) -> bool:
    """Whether the node has a device, but no label yet by which the pod selects its model."""
    choice = filters.choice
    return (
        any(node.allocatable.get(it, 0) for it, _ in filters.asked if is_device(it))
        and choice.matches({**expected_labels(filters), **node.labels}, node.name)
        and not choice.matches(node.labels, node.name)
    )


def _lacks_devices(node: NodeInfo, filters: Filters) -> bool:
    """Whether a device is missing that the node is to have.

    The pod selects the node by a label, or the node has a sign of such devices: a taint, a label or
    its type.
    """
    is_selected = any(filters.choice) and filters.choice.matches(node.labels, node.name)
    return has_lost_devices(node, filters) or (is_selected and bool(_missing(node, filters)))


def expected_devices(node: NodeInfo, filters: Filters) -> list[str]:
    """Return the devices that the pod asks for, and that a young node is to have but lacks."""
    return _missing(node, filters) if _lacks_devices(node, filters) else []


def expected_labels(filters: Filters) -> dict[str, str]:
    """Return the labels that feature discovery gives to a node that the pod selects."""
    labels = filters.choice.labels
    return {it: value for it, value in labels.items() if it.startswith(DISCOVERED)}


def has_lost_devices(node: NodeInfo, filters: Filters) -> bool:
    """Whether a node has a sign of devices that the pod asks for, but reports none of them.

    On a node that isn't starting any more, the device plugin has failed.
    """
    missing = _missing(node, filters)
    has_sign = any(key.endswith(_LABELS) for key in node.labels) or bool(
        _FAMILIES.match(node.labels.get(INSTANCE_TYPE, ""))
    )
    return bool(missing) and (has_sign or any(taint.key in missing for taint in node.taints))


def _missing(node: NodeInfo, filters: Filters) -> list[str]:
    return [
        resource
        for resource, _ in filters.asked
        if is_device(resource) and node.allocatable.get(resource, 0) == 0
    ]
