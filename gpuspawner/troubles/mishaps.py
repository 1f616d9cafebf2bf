"""What has happened to a server that the hub still takes as up."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from gpuspawner.kube.startup import StartingPod
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.troubles.ending import memory_limit
from gpuspawner.troubles.evidence import server
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.trouble import Kind

UNREACHABLE = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})
"""Taints of a node that doesn't answer any more."""


class Mishap(msgspec.Struct, frozen=True):
    """Something that has happened to a server.

    Attributes:
        moment: When the kubelet had to start the server again; None if it didn't.
        memory: The limit of the container that took too much, in bytes; 0 if it isn't known.
    """

    kind: Kind
    moment: datetime | None = None
    memory: int = 0


def mishaps(pod: StartingPod, node: NodeInfo | None) -> list[Mishap]:
    """Return what has happened to a server; *node* is its node as the view has it."""
    found = [*_of_node(pod, node), *_of_pod(pod)]
    return list({it.kind: it for it in reversed(found)}.values())


def is_lost(node: NodeInfo | None) -> bool:
    """Whether a node doesn't answer any more, or is gone."""
    return node is None or any(it.key in UNREACHABLE for it in node.taints)


def _of_pod(pod: StartingPod) -> Iterator[Mishap]:
    # Other containers may crash too, an init container before the server was up, for example.
    name = server(pod)
    for it in troubles(pod, ()):
        if it.kind is Kind.DEVICE_BROKEN:
            yield Mishap(it.kind)
        is_restart = it.kind in (Kind.OUT_OF_MEMORY, Kind.CRASHED)
        if is_restart and it.about.container == name and it.last is not None:
            yield Mishap(it.kind, it.last, memory_limit(pod, name))


def _of_node(pod: StartingPod, node: NodeInfo | None) -> Iterator[Mishap]:
    if node is None:  # not read yet, perhaps
        return
    if is_lost(node):
        yield Mishap(Kind.NODE_LOST)
    if any(is_gpu(it) and _takes_back(node, it) for it in _asked(pod)):
        yield Mishap(Kind.DEVICE_BROKEN)


def _takes_back(node: NodeInfo, resource: str) -> bool:
    """Whether a device plugin takes broken devices back, even those that pods have.

    If all of several are gone, the plugin itself is away, for an upgrade for example
    (`PluginDisconnected` in ``pkg/kubelet/cm/devicemanager/manager.go``, v1.36). And a plugin that
    counts fewer shares of a GPU lowers the capacity, too.
    """
    healthy, every = node.allocatable.get(resource, 0), node.capacity.get(resource, 0)
    are_all_gone = healthy == 0 and every > 1
    return healthy < every and not are_all_gone and node.free.get(resource, 0) < 0


def _asked(pod: StartingPod) -> Iterator[str]:
    for container in pod.spec.containers or ():
        if container.resources:
            yield from container.resources.limits or ()
