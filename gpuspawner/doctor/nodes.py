"""Nodes, as the commands name and group them."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from gpuspawner.gates.what_if import Tried
from gpuspawner.offers.discovery import gpus, model_label
from gpuspawner.scheduling import ClusterState, NodeInfo
from gpuspawner.scheduling.node_affinity import node_choice

_MOST_NAMED = 3
_MOST_AMOUNTS = 4
_GIB = 2**30


def names(nodes: Iterable[NodeInfo]) -> str:
    """Name nodes; the first and the last of many."""
    listed = sorted(node.name for node in nodes)
    if len(listed) <= _MOST_NAMED:
        return ", ".join(listed)
    return f"{listed[0]} … {listed[-1]}"


def selected(state: ClusterState, tried: Tried) -> list[NodeInfo]:
    """Return the nodes that the pod's selector and affinity select."""
    if tried.pod is None:
        return []
    choice = node_choice(tried.pod.spec)
    return [node for node in state.nodes.values() if choice.matches(node.labels, node.name)]


def away(node: NodeInfo) -> str:
    """Return why a node takes no pods for the moment; "" if it takes pods."""
    if node.node is not None and node.node.spec.unschedulable:
        return "cordoned"
    taint = next((it.key for it in node.taints if it not in node.lasting_taints), "")
    return taint.rpartition("/")[2]


def used(nodes: Iterable[NodeInfo], resource: str) -> int:
    """Count what pods request of a resource; millicores, bytes or devices."""
    return sum(node.requested.get(resource, 0) for node in nodes)


def free_on_each(nodes: Iterable[NodeInfo], resource: str) -> str:
    """Say how many nodes have how much free: `4 on 3 nodes, 0 on 1 node`."""
    free = Counter(max(0, node.free.get(resource, 0)) for node in nodes)
    listed = sorted(free.items(), reverse=True)
    texts = [f"{much} on {many}" for much, many in listed[:_MOST_AMOUNTS]]
    return ", ".join([*texts, "…"] if len(listed) > _MOST_AMOUNTS else texts)


class Group(msgspec.Struct, frozen=True):
    """Nodes that are equal but for their pods.

    Attributes:
        kind: The label that names the model or the type; "" if there is none.
        away: As `away`.
        resources: Their GPUs, by resource.
    """

    kind: str
    away: str
    resources: tuple[str, ...]
    nodes: tuple[NodeInfo, ...]


def groups(nodes: Iterable[NodeInfo]) -> list[Group]:
    """Group equal nodes; those with GPUs come first."""
    found: dict[tuple[object, ...], list[NodeInfo]] = {}
    for node in nodes:
        found.setdefault(_alike(node), []).append(node)
    made = [
        Group(model_label(its[0])[1], away(its[0]), tuple(sorted(gpus(its[0]))), tuple(its))
        for its in found.values()
    ]
    return sorted(made, key=lambda it: (not it.resources, it.kind, it.away, it.nodes[0].name))


def _alike(node: NodeInfo) -> tuple[object, ...]:
    """Return what equal nodes have in common; machines of one type differ in some megabytes."""
    devices = [(name, node.capacity.get(name), node.allocatable.get(name)) for name in gpus(node)]
    memory = round(node.allocatable.get("memory", 0) / _GIB)
    cpu = node.allocatable.get("cpu", 0)
    _, kind = model_label(node)
    return (kind, away(node), tuple(sorted(devices)), cpu, memory, frozenset(node.taints))
