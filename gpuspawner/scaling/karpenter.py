"""Karpenter's NodePools: what they may still add, by their limits and their NodeClaims.

Karpenter (``pkg/controllers/provisioning/scheduling``, v1.14.1) adds an instance type only if its
capacity is within what is left of every limit. A type with one GPU takes one of a limit, even if
its node will offer four shares of it. Its API doesn't tell the instance types; a pool's nodes and
NodeClaims show those that it has made. They are sorted by pool once for all pods that are judged at
a moment: in a cluster of thousands of nodes, reading all of them for each pool and each pod takes a
second.
"""

import math
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from gpuspawner.cluster.autoscaler_objects import AutoscalerObjects
from gpuspawner.kube.autoscaling import NodeClaim, NodePool
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Quantities, Quantity
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.quantity import INT64_MAX, NANOS, QuantityError, parse_nanos
from gpuspawner.offers.vendors import DISCOVERED, INSTANCE_TYPE
from gpuspawner.scaling.node_pool import (
    Growth,
    Machine,
    arriving,
    devices,
    like,
    new_node,
    with_devices,
)
from gpuspawner.scaling.outlook import Obstacle, Source, WhyNoNode
from gpuspawner.scaling.requirements import PoolRequirements
from gpuspawner.scaling.starting_nodes import is_starting, is_young
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import Amounts, allocatable, is_device
from gpuspawner.scheduling.state import ClusterState

POOL = "karpenter.sh/nodepool"


class SeenNode(msgspec.Struct, frozen=True):
    """A kind of node that a pool has made: as it will be, and what counts against its limits.

    Attributes:
        capacity: The instance type's, if a NodeClaim has told it.
    """

    node: NodeInfo
    capacity: Amounts

    @property
    def type(self) -> str:
        """Its instance type."""
        return self.node.labels.get(INSTANCE_TYPE, "")


class PoolNodes(msgspec.Struct):
    """The nodes of one pool.

    Attributes:
        settled: By instance type, the one with the most devices of those that aren't young.
        young: Nodes that may still be starting.
        claims: How many NodeClaims count; Karpenter leaves out those that are being deleted.
        made: By instance type, what a NodeClaim says of its node.
        open: What NodeClaims say whose node isn't there, or may still be starting; by the names of
            the NodeClaim and, if it is there, of the node.
    """

    settled: dict[str, NodeInfo] = msgspec.field(default_factory=dict)
    young: list[NodeInfo] = msgspec.field(default_factory=list)
    claims: int = 0
    made: dict[str, SeenNode] = msgspec.field(default_factory=dict)
    open: list[tuple[str, SeenNode]] = msgspec.field(default_factory=list)


def _made(claim: NodeClaim) -> SeenNode | None:
    """Return the node of a claim; None until Karpenter knows what it launches."""
    try:
        amounts = allocatable(claim.status.allocatable)
        capacity = allocatable(claim.status.capacity)
    except QuantityError:
        return None
    if not amounts:
        return None
    labels = dict(claim.metadata.labels or {})
    for it in claim.spec.requirements or ():
        if it.operator == "In" and len(it.values or ()) == 1:
            labels.setdefault(it.key, (it.values or [""])[0])
    node = new_node(claim.metadata.name, labels, tuple(claim.spec.taints or ()), amounts)
    return SeenNode(node, capacity)


_NODES = "nodes"
_OF_EVERY_NODE = (_NODES, "cpu", "memory", "pods", "ephemeral-storage")

_Nanos = dict[str, int]

# In billionths. Larger limits, such as 1e1000, would only be too large for a float.
_NO_LIMIT = INT64_MAX * NANOS


class _Shown(msgspec.Struct):
    """What a pool has shown so far, by instance type.

    Attributes:
        kinds: The kinds of its nodes.
        capacities: What NodeClaims have told, which nodes don't.
    """

    kinds: dict[str, SeenNode] = msgspec.field(default_factory=dict)
    capacities: dict[str, Amounts] = msgspec.field(default_factory=dict)

    def see(self, its: PoolNodes, joined: Iterable[NodeInfo]) -> None:
        """Keep what the pool's nodes show; only nodes tell how much DaemonSets' pods take."""
        found = {it.type: self.with_room(it) for it in its.made.values()}
        for node in (*its.settled.values(), *joined):
            seen = SeenNode(like(node), node.capacity)
            known = found.get(seen.type)
            told = known.node.allocatable if known else {}
            room = with_devices(seen.node.allocatable, node.capacity, told)
            found[seen.type] = SeenNode(_with(seen.node, room), node.capacity)
        self.capacities |= {it.type: it.capacity for it in its.made.values() if it.capacity}
        for its_type, seen in found.items():
            capacity = self.capacities.get(its_type, seen.capacity)
            self.kinds[its_type] = SeenNode(seen.node, capacity)

    def with_room(self, made: SeenNode) -> SeenNode:
        """Return what a NodeClaim says of its node, with the room that nodes of its type had.

        A NodeClaim doesn't know how the node will share its devices.
        """
        seen = self.kinds.get(made.type)
        if seen is None:
            return made
        shown = seen.node.allocatable
        room = with_devices(shown, shown, made.node.allocatable)
        return SeenNode(_with(made.node, room), made.capacity)


class Karpenter:
    """The NodePools, and the kinds of nodes that they have shown so far."""

    def __init__(self, state: ClusterState, objects: AutoscalerObjects) -> None:
        self._state = state
        self._objects = objects
        self._sorted = UntilChanged[defaultdict[str, PoolNodes]]()
        self._made: dict[str, tuple[NodeClaim, SeenNode | None]] = {}
        self._shown = defaultdict[str, _Shown](_Shown)

    def growths(self, filters: Filters) -> list[Growth]:
        """Return how each NodePool can grow for the pod of *filters*."""
        pools, version = self._objects.node_pools, (self._state.version, self._objects.version)
        nodes = self._sorted.of(version, (), self._sort)
        if self._objects.known("NodePool"):
            # A pool that comes back may have other machines.
            for gone in self._shown.keys() - {it.name for it in pools}:
                del self._shown[gone]
        return [
            Growth(Source.KARPENTER, pool.name, nodes=0)
            if isinstance(pool, Undecodable)
            else self._growth(pool, nodes[pool.name], filters)
            for pool in pools
        ]

    def _growth(self, pool: NodePool, its: PoolNodes, filters: Filters) -> Growth:
        name, shown = pool.name, self._shown[pool.name]
        starting = {it.name for it in its.young if is_starting(it, filters)}
        shown.see(its, [it for it in its.young if it.name not in starting])
        # Without the right to list NodeClaims, a hub knows only Karpenter's own count.
        nodes = max(its.claims, _count(pool.status.resources) or 0)
        left = _left(pool, nodes)
        requirements = _requirements(pool)
        seen = [
            SeenNode(_now_made(it.node, requirements), it.capacity)
            for it in shown.kinds.values()
            if requirements.describe(it.node.labels)
        ]
        asked = dict(filters.asked)
        counted = [(it, _affordable(left, it.capacity)) for it in seen]
        # Karpenter adds none for a pod that asks for more than it knows of; a pod shows if it does.
        known = [Machine(it.node, n) for it, n in counted if n == 0 or not _beyond(it, asked)]
        return Growth(
            source=Source.KARPENTER,
            pool=name,
            nodes=nodes,
            max_nodes=_count(pool.spec.limits),
            machines=tuple(known),
            is_complete=len(known) == len(seen)
            and _lists_seen_types(pool, [it.node for it in seen]),
            rest={it: _offered(it, nanos, seen) for it, nanos in left.items() if it != _NODES},
            coming=tuple(self._coming(shown, its, starting)),
            requirements=requirements,
            obstacle=_obstacle(pool, left, asked),
        )

    def _coming(self, shown: _Shown, its: PoolNodes, starting: set[str]) -> Iterable[NodeInfo]:
        for name, made in its.open:
            node = shown.with_room(made).node
            present = self._state.nodes.get(name)
            if present is None:
                yield node
            elif name in starting:
                yield arriving(present, node)

    def _sort(self) -> defaultdict[str, PoolNodes]:
        """Return the nodes by the names of their pools."""
        pools: defaultdict[str, PoolNodes] = defaultdict(PoolNodes)
        young = set()
        for node in self._state.nodes.values():
            if (name := node.labels.get(POOL)) is None:
                continue
            if is_young(node):
                pools[name].young.append(node)
                young.add(node.name)
                continue
            kinds, its_type = pools[name].settled, node.labels.get(INSTANCE_TYPE, "")
            known = kinds.get(its_type)
            # A node whose device plugin has failed says nothing of its type.
            if known is None or devices(node.allocatable) >= devices(known.allocatable):
                kinds[its_type] = node
        claims = self._objects.every(NodeClaim)
        self._made = {it.metadata.name: (it, self._read(it)) for it in claims}
        for claim, made in self._made.values():
            if claim.metadata.deletion_timestamp is not None:
                continue
            pool = pools[(claim.metadata.labels or {}).get(POOL, "")]
            pool.claims += 1
            if made is None:
                continue
            pool.made[made.type] = made
            on = claim.status.node_name
            if on not in self._state.nodes or on in young:
                pool.open.append((on, made))
        return pools

    def _read(self, claim: NodeClaim) -> SeenNode | None:
        known = self._made.get(claim.metadata.name)
        return known[1] if known and known[0] is claim else _made(claim)


def _with(node: NodeInfo, room: Amounts) -> NodeInfo:
    if room == node.allocatable:
        return node
    return new_node(node.name, node.labels, node.taints, room)


def _requirements(pool: NodePool) -> PoolRequirements:
    template = pool.spec.template
    return PoolRequirements(
        {**(template.metadata.labels or {}), POOL: pool.name},
        tuple(template.spec.requirements or ()),
        tuple(template.spec.taints or ()),
    )


def _now_made(node: NodeInfo, requirements: PoolRequirements) -> NodeInfo:
    """Return the next node of a kind; its labels and taints are those that the pool has now."""
    defined = {it.key for it in requirements.expressions}
    # What is discovered on a node is unknown before, so Karpenter adds none for it.
    kept = {
        key: value
        for key, value in node.labels.items()
        if key in defined or not key.startswith(DISCOVERED)
    }
    labels = {**kept, **requirements.labels}
    return new_node(node.name, labels, requirements.taints, node.allocatable)


def _left(pool: NodePool, nodes: int) -> _Nanos:
    """Return what is left of each limit, in billionths, without limits that can't be read."""
    used = pool.status.resources or {}
    left: _Nanos = {}
    for resource, limit in (pool.spec.limits or {}).items():
        try:
            taken = nodes * 10**9 if resource == _NODES else _nanos(used.get(resource, 0))
            left[resource] = min(_nanos(limit), _NO_LIMIT) - taken
        except QuantityError:
            continue
    return left


def _nanos(quantity: Quantity) -> int:
    return parse_nanos(str(quantity))


def _affordable(left: _Nanos, capacity: Amounts) -> int | None:
    """Return how many more such nodes the limits allow; None without limits."""
    counts = []
    for resource, nanos in left.items():
        amount = 1 if resource == _NODES else capacity.get(resource, 0)
        if amount > 0:
            counts.append(max(0, nanos // (amount * _unit(resource))))
    return min(counts, default=None)


def _beyond(seen: SeenNode, asked: Amounts) -> bool:
    """Whether a pod asks for more shares than the instance type has devices, as Karpenter knows it.

    It compares these two (``fits`` in ``nodeclaim.go``); a NodeOverlay may tell it of shares.
    """
    return any(
        seen.capacity.get(it, 0) < asked.get(it, 0) <= amount
        for it, amount in seen.node.allocatable.items()
        if is_device(it)
    )


def _offered(resource: str, nanos: int, seen: Iterable[SeenNode]) -> float:
    """Return the most that nodes offer within what is left of a limit: of shared GPUs, more."""
    amount = nanos // _unit(resource)
    most: float = amount
    for it in seen:
        offered, counted = it.node.allocatable.get(resource, 0), it.capacity.get(resource, 0)
        if offered > counted:
            most = max(most, amount * offered // counted if counted else math.inf)
    return most


def _unit(resource: str) -> int:
    """Return the billionths in one unit; amounts of CPU are in millicores."""
    return 10**6 if resource == "cpu" else 10**9


def _count(quantities: Quantities | None) -> int | None:
    """Return the number of nodes among these quantities; None if they don't have it."""
    try:
        return _nanos((quantities or {})[_NODES]) // 10**9
    except (KeyError, QuantityError):
        return None


def _obstacle(pool: NodePool, left: _Nanos, asked: Amounts) -> Obstacle | None:
    """Return why Karpenter leaves the pool out, or why no machine is within its limits."""
    name = pool.name
    if pool.spec.replicas is not None:
        return Obstacle(WhyNoNode.AT_MAXIMUM, name, nodes=pool.spec.replicas)
    if pool.metadata.deletion_timestamp is not None:
        return Obstacle(WhyNoNode.REFUSED, name, "the NodePool is being deleted")
    if not pool.is_ready:
        return Obstacle(WhyNoNode.REFUSED, name, "the NodePool isn't ready")
    for resource, nanos in left.items():
        # A limit that is exceeded keeps off even machines without the resource.
        least = max(asked.get(resource, 0), 1 if resource in _OF_EVERY_NODE else 0)
        if nanos < least * _unit(resource):
            is_count = resource == _NODES
            why = WhyNoNode.AT_MAXIMUM if is_count else WhyNoNode.LIMIT
            return Obstacle(why, name, f"its limit of {resource} is reached")
    return None


def _lists_seen_types(pool: NodePool, seen: Iterable[NodeInfo]) -> bool:
    """Whether the pool lists its instance types, and has made each of them."""
    listed = [
        set(it.values or ())
        for it in pool.spec.template.spec.requirements or ()
        if it.key == INSTANCE_TYPE and it.operator == "In"
    ]
    return bool(listed) and set.intersection(*listed) <= {
        it.labels.get(INSTANCE_TYPE) for it in seen
    }
