"""A pool of nodes that can grow, in the same form from each source.

One source is the administrator, who declares autoscaling: ``scale_up``. An autoscaler reacts only
to Pending pods, so a refusal never triggers it. If a new node would help, the spawner must
therefore create the pod, and tell the user how long that usually takes.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from gpuspawner.kube.nodes import Taint
from gpuspawner.offers.shapes import thaw
from gpuspawner.offers.vendors import DISCOVERED, HOSTNAME, INSTANCE_TYPE
from gpuspawner.scaling.outlook import Obstacle, Source
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scaling.starting_nodes import is_starting
from gpuspawner.scheduling.could_hold import healthy
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_affinity import node_choice, selecting
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import EPHEMERAL_STORAGE, MEMORY, PODS, Amounts, is_device
from gpuspawner.scheduling.state import ClusterState

_OF_ONE_NODE = (HOSTNAME, "alpha.eksctl.io/instance-id", "nvidia.com/gfd.timestamp")
_VARIES = (MEMORY, EPHEMERAL_STORAGE)


class Machine(msgspec.Struct, frozen=True):
    """A kind of node that a pool makes.

    Attributes:
        node: As it will be when it has joined: empty but for DaemonSets' pods.
        left: How many more the pool can add; None if it has no limit.
        is_trusted: Whether only the administrator's word is known; it then holds one such pod.
    """

    node: NodeInfo
    left: int | None
    is_trusted: bool = False


class Requirements(Protocol):
    """What a pool requires of its nodes, if it is known."""

    def allow(self, filters: Filters) -> bool:
        """Whether one of its nodes may be a node that the pod can run on."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How one pool can grow.

    Attributes:
        nodes: How many nodes it has, including those on their way.
        max_nodes: As in `CanScaleUp`.
        machines: The kinds of nodes that it is known to make.
        is_complete: Whether it makes no other kinds.
        rest: What nodes of all kinds together can offer of resources within its limits.
        coming: Nodes on their way, each with the room that it will have.
        requested: How many more are on their way, without saying what they will be.
        requirements: What holds for all its nodes; None if that isn't known.
        obstacle: Why it can't add a node at all, for now.
        is_listed: Whether an autoscaler that runs lists it as healthy.
    """

    source: Source
    pool: str
    nodes: int
    max_nodes: int | None = None
    machines: tuple[Machine, ...] = ()
    is_complete: bool = False
    rest: Mapping[str, float] = field(default_factory=dict)
    coming: tuple[NodeInfo, ...] = ()
    requested: int = 0
    minutes: float | None = None
    requirements: Requirements | None = field(default=None, repr=False)
    obstacle: Obstacle | None = None
    is_listed: bool = False

    @property
    def is_uniform(self) -> bool:
        """Whether all nodes that it can add are alike."""
        return self.is_complete and len(self.machines) == 1

    def most(self, resource: str) -> float:
        """Return the most of a resource that can still come, on its way or not."""
        if self.requested or any(machine.is_trusted for machine in self.machines):
            return math.inf
        coming = sum(max(0, node.free.get(resource, 0)) for node in self.coming)
        if self.obstacle:
            return coming
        return coming + min(self.rest.get(resource, math.inf), self._most_by_kind(resource))

    def _most_by_kind(self, resource: str) -> float:
        if not self.is_complete:
            return math.inf
        return sum(
            math.inf if it.left is None else it.left * it.node.free.get(resource, 0)
            for it in self.machines
        )


def new_node(
    name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], amounts: Amounts
) -> NodeInfo:
    """Return a node that doesn't exist yet, without pods."""
    # Results about volumes are kept by the node's name, so nodes with other labels need another.
    node = NodeInfo(f"new {name} {hash(frozenset(labels.items())):x}")
    node.labels = {**labels, HOSTNAME: node.name}
    node.taints = tuple(it for it in taints if it.effect in ("NoSchedule", "NoExecute"))
    node.allocatable = node.capacity = dict(amounts)
    node.free = dict(amounts)
    return node


def like(present: NodeInfo) -> NodeInfo:
    """Return a new node like a present one: healthy, and with the pods of DaemonSets alone."""
    taken = {**present.staying_requested, PODS: present.staying}
    room = {r: amount - taken.get(r, 0) for r, amount in healthy(present).items()}
    return new_node(present.name, present.labels, present.lasting_taints, room)


def kind(present: NodeInfo) -> object:
    """Return what new nodes like a present one have in common.

    Two machines of one type differ in some KiB of memory, so two digits of that count.
    """
    amounts = {
        resource: round(amount, 2 - len(str(abs(amount)))) if resource in _VARIES else amount
        for resource, amount in present.allocatable.items()
    }
    return _lasting_labels(present), frozenset(amounts.items()), frozenset(present.lasting_taints)


def machine_type(node: NodeInfo) -> object:
    """Return what tells machines of one pool apart, no matter what of them works."""
    return node.labels.get(INSTANCE_TYPE) or _lasting_labels(node)


def devices(amounts: Amounts) -> int:
    """Return how many devices there are, of all kinds."""
    return sum(amount for resource, amount in amounts.items() if is_device(resource))


def with_devices(room: Amounts, shown: Amounts, told: Amounts) -> Amounts:
    """Return a node's room with the devices that it is told to have, if it shows fewer.

    Those of one maker count together, since shares and slices may have other names. Nothing else
    tells of them: a plugin of others may have devices already, and a NodeClaim of AWS counts
    network interfaces (``vpc.amazonaws.com/pod-eni``) that most nodes never show.

    Args:
        room: What is left beside the pods of DaemonSets.
        shown: All that the node has.
        told: What its NodeClaim, or another node of its type, says.
    """
    had, has = _by_maker(told), _by_maker(shown)
    lost = {maker for maker, amount in had.items() if has[maker] < amount}
    if not lost:
        return room
    kept = {it: amount for it, amount in room.items() if _maker(it) not in lost}
    return {**kept, **{it: amount for it, amount in told.items() if _maker(it) in lost}}


def _by_maker(amounts: Amounts) -> Counter[str]:
    found = Counter[str]()
    for resource, amount in amounts.items():
        if is_device(resource):
            found[_maker(resource)] += amount
    return found


def _maker(resource: str) -> str:
    return resource.partition("/")[0]


def _lasting_labels(node: NodeInfo) -> frozenset[tuple[str, str]]:
    return frozenset(it for it in node.labels.items() if it[0] not in _OF_ONE_NODE)


def arriving(present: NodeInfo, model: NodeInfo) -> NodeInfo:
    """Return a present node that is still starting, as it will be: with what *model* has.

    Pods that are already bound to it keep their room. Another type may have other GPUs, so what is
    discovered is then unknown.
    """
    node = new_node(present.name, present.labels, present.lasting_taints, model.allocatable)
    node.labels = dict(present.labels)
    if model.labels.get(INSTANCE_TYPE) == present.labels.get(INSTANCE_TYPE):
        discovered = {it: of for it, of in model.labels.items() if it.startswith(DISCOVERED)}
        node.labels = {**discovered, **present.labels}
    bound = {**present.requested, PODS: len(present.pods)}
    staying = {**present.staying_requested, PODS: present.staying}
    for resource, amount in bound.items():
        node.free[resource] = node.free.get(resource, 0) - amount + staying.get(resource, 0)
    return node


def declared_growth(state: ClusterState, pool: DeclaredPool, filters: Filters) -> Growth:
    """Return how a pool with a ``scale_up`` can grow for the pod of *filters*.

    A new node is like one of the pool's nodes, and runs only DaemonSets. The administrator is
    trusted about the number of devices, because the first nodes of a pool may still be starting,
    without allocatable devices, and because they offer the larger counts on purpose. If the pool
    has no nodes, they are trusted about everything.
    """
    members = _members(state, pool)
    starting = [node for node in members if is_starting(node, filters)]
    models = {kind(node): node for node in members if node not in starting}
    left = max(0, pool.scale_up.max_nodes - len(members))
    nodes = [_with_devices(like(node), pool.resource, filters) for node in models.values()]
    machines = tuple(Machine(node, left) for node in nodes)
    if not machines:
        trusted = new_node("declared", pool.node_selector, (), {**dict(filters.asked), PODS: 1})
        machines = (Machine(trusted, left, is_trusted=True),)
    model = machines[0].node
    return Growth(
        source=Source.DECLARED,
        pool=pool.name,
        nodes=len(members),
        max_nodes=pool.scale_up.max_nodes,
        machines=machines,
        is_complete=True,
        coming=tuple(arriving(node, model) for node in starting),
        minutes=pool.scale_up.minutes,
    )


def _members(state: ClusterState, pool: DeclaredPool) -> list[NodeInfo]:
    """Return the nodes that the pool's own selector and terms select."""
    spec = selecting(dict(pool.node_selector), thaw(pool.node_affinity))
    if spec is None:  # invalid affinity terms select nothing
        return []
    choice = node_choice(spec)
    return [node for node in state.nodes.values() if choice.matches(node.labels, node.name)]


def _with_devices(node: NodeInfo, resource: str, filters: Filters) -> NodeInfo:
    asked = dict(filters.asked).get(resource, 0)
    if node.free.get(resource, 0) < asked:
        node.free[resource] = asked
        node.allocatable = node.capacity = {**node.allocatable, resource: asked}
    return node
