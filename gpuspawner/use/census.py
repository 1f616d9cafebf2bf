"""Who has the GPUs of each node and of each accelerator, at one moment. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.pods import Toleration
from gpuspawner.offers import vendors
from gpuspawner.offers.shapes import thaw
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.scheduling.contention import Demand
from gpuspawner.scheduling.node_affinity import NodeChoice, node_choice, selecting
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import Amounts
from gpuspawner.scheduling.taint_toleration import untolerated

Kept = tuple[str, str, int]
"""A node, a resource, and how many of it somebody in line collects there."""


class Held(NamedTuple):
    """GPUs by state. Each is in one, so that together they are all that a node reports.

    Attributes:
        ours: This hub's servers have them.
        others: Other pods of the cluster have them.
        reserved: They are promised to a start whose pod isn't there yet.
        line: Somebody in line collects them.
        away: Nobody can get them: the node is cordoned, tainted or not ready, or they are broken.
    """

    free: int = 0
    ours: int = 0
    others: int = 0
    reserved: int = 0
    line: int = 0
    away: int = 0


class NodeGpus(msgspec.Struct, gc=False, frozen=True):
    """The GPUs of one resource of a node.

    Attributes:
        accelerators: The keys of the accelerators that select it.
        part: ``slice`` or ``share`` if the resource counts parts of GPUs; else "".
    """

    node: str
    resource: str
    accelerators: tuple[str, ...]
    part: str
    held: Held


class AcceleratorGpus(msgspec.Struct, frozen=True):
    """The GPUs of an accelerator; *key* is the resource if no accelerator selects them.

    A node that two accelerators select counts for both.
    """

    key: str
    part: str
    nodes: int
    held: Held


class Census(msgspec.Struct, frozen=True):
    """The GPUs of the whole cluster."""

    nodes: tuple[NodeGpus, ...] = ()
    accelerators: tuple[AcceleratorGpus, ...] = ()


class Selecting(msgspec.Struct, frozen=True):
    """Which nodes have an accelerator, and which taints its pods tolerate."""

    accelerator: Accelerator
    choice: NodeChoice
    tolerations: tuple[Toleration, ...]

    def matches(self, node: NodeInfo, resource: str) -> bool:
        """Whether a pod with the accelerator selects the node."""
        selects = self.accelerator.resource == resource
        return selects and self.choice.matches(node.labels, node.name)


def selectors(
    accelerators: Iterable[Accelerator], tolerations: Sequence[Any] = ()
) -> tuple[Selecting, ...]:
    """Return the selectors of accelerators; *tolerations* are those that every pod has."""
    return tuple(_selector(it, tolerations) for it in accelerators)


def _selector(of: Accelerator, tolerations: Sequence[Any]) -> Selecting:
    # The admission plugin ExtendedResourceToleration, which most clusters have, adds one.
    by_admission = {"key": of.resource, "operator": "Exists"}
    every = [by_admission, *tolerations, *map(thaw, of.tolerations)]
    spec = selecting(dict(of.node_selector), thaw(of.node_affinity), tolerations=every)
    if spec is None:  # an administrator's own toleration can't be read
        return _selector(of, ())
    return Selecting(of, node_choice(spec), tuple(spec.tolerations or ()))


def node_gpus(
    node: NodeInfo, ours: Amounts, selecting: Sequence[Selecting]
) -> tuple[NodeGpus, ...]:
    """Return the GPUs of a node, of which *ours* are this hub's servers'; promises come later."""
    offered = {it.accelerator.resource for it in selecting}
    named = sorted(
        resource
        for resource in node.capacity.keys() | node.allocatable.keys()
        if is_gpu(resource) or resource in offered
    )
    return tuple(it for resource in named if (it := _of_resource(node, resource, ours, selecting)))


def _of_resource(
    node: NodeInfo, resource: str, ours: Amounts, selecting: Sequence[Selecting]
) -> NodeGpus | None:
    usable = node.allocatable.get(resource, 0)
    every = max(node.capacity.get(resource, 0), usable)
    if every <= 0:
        return None
    found = [it for it in selecting if it.matches(node, resource)]
    # What another one narrows down isn't meant: a node of "any GPU" and of "T4" has T4s.
    meant = [it for it in found if not any(by.accelerator.narrows(it.accelerator) for by in found)]
    mine = min(max(0, ours.get(resource, 0)), every)
    others = min(max(0, node.requested.get(resource, 0) - mine), every - mine)
    rest = every - mine - others
    free = 0 if _is_away(node, meant) else min(rest, max(0, usable - mine - others))
    return NodeGpus(
        node.name,
        resource,
        tuple(it.accelerator.key for it in meant),
        _part(node, resource),
        Held(free, mine, others, away=rest - free),
    )


def _is_away(node: NodeInfo, meant: Sequence[Selecting]) -> bool:
    if node.node is None or node.node.spec.unschedulable or node.taints != node.lasting_taints:
        return True
    if not node.taints or not meant:  # of GPUs that aren't offered, nobody knows who tolerates them
        return False
    return all(untolerated(node.taints, it.tolerations) is not None for it in meant)


def counted_as(row: NodeGpus | None, kind: str) -> str:
    """Return as which accelerator the GPUs of a pod count on a node; *kind* is what the pod says.

    A pod of a profile needn't select its model, and one of "any GPU" has a T4 on a node of T4s.
    """
    its = row.accelerators if row is not None else ()
    return its[0] if its and kind not in its else kind


def _part(node: NodeInfo, resource: str) -> str:
    if vendors.is_slice(resource, node.labels):
        return "slice"
    return "share" if vendors.is_shared(resource, node.labels) else ""


# The whole cluster.


def census(
    nodes: Iterable[NodeGpus], promised: Iterable[Demand] = (), kept: Iterable[Kept] = ()
) -> Census:
    """Return the census of these nodes.

    Nobody knows on which node the scheduler puts a promised pod; it counts on the first by name
    where it fits. So the sums are exact, and a node's number is a guess.
    """
    places = {(it.node, it.resource): it for it in nodes}
    for some in _placed(promised, places):
        _move(places, some, "reserved")
    for some in kept:
        _move(places, some, "line")
    rows = tuple(places[key] for key in sorted(places))
    return Census(rows, tuple(_by_accelerator(rows)))


def _placed(promised: Iterable[Demand], places: dict[tuple[str, str], NodeGpus]) -> Iterator[Kept]:
    resources = {resource for _, resource in places}
    left: dict[int, list[str]] = {}
    for it in promised:  # equal demands are the same object, and go on where the last one fitted
        asked = [(name, n) for name, n in it.requests.items() if n and name in resources]
        if id(it) not in left:
            every = {node for node, _ in places} if it.nodes is None else it.nodes
            left[id(it)] = sorted(every, reverse=True)
        nodes = left[id(it)] if asked else []
        while nodes and not all(_free(places, nodes[-1], *one) for one in asked):
            nodes.pop()
        if nodes:
            yield from ((nodes[-1], *one) for one in asked)


def _free(places: dict[tuple[str, str], NodeGpus], node: str, resource: str, amount: int) -> bool:
    row = places.get((node, resource))
    return row is not None and row.held.free >= amount


def _move(places: dict[tuple[str, str], NodeGpus], some: Kept, state: str) -> None:
    """Take free GPUs of a node for a start or for the line, as far as there are any."""
    node, resource, amount = some
    if (row := places.get((node, resource))) is not None:
        held, moved = row.held, min(row.held.free, amount)
        more = {"free": held.free - moved, state: getattr(held, state) + moved}
        places[node, resource] = replace(row, held=held._replace(**more))


def _by_accelerator(rows: Iterable[NodeGpus]) -> Iterator[AcceleratorGpus]:
    groups: dict[tuple[str, str], list[Held]] = {}
    for row in rows:
        for key in row.accelerators or (row.resource,):
            groups.setdefault((key, row.part), []).append(row.held)
    for (key, part), held in sorted(groups.items()):
        yield AcceleratorGpus(key, part, len(held), Held(*map(sum, zip(*held, strict=True))))
