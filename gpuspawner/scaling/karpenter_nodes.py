"""Karpenter's nodes and NodeClaims, sorted by pool once for all pods that are judged at a moment.

In a cluster of thousands of nodes, reading all of them for each pool and each pod takes a second.
"""

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from gpuspawner.kube.autoscaling import NodeClaim
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.until_changed import UntilChanged
from gpuspawner.offers.vendors import INSTANCE_TYPE
from gpuspawner.scaling.node_pool import devices, new_node
from gpuspawner.scaling.objects import AutoscalerObjects
from gpuspawner.scaling.starting import is_young
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import Amounts, allocatable
from gpuspawner.scheduling.state import ClusterState

POOL = "karpenter.sh/nodepool"


class SeenNode(msgspec.Struct, frozen=True):
    """A kind of node that a pool has made: as it will be, and what counts against its limits."""

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


class KarpenterNodes:
    """All pools' nodes, until a node or a NodeClaim changes."""

    def __init__(self, state: ClusterState, objects: AutoscalerObjects) -> None:
        self._state = state
        self._objects = objects
        self._pools = UntilChanged[Mapping[str, PoolNodes]]()
        self._made: dict[str, tuple[NodeClaim, SeenNode | None]] = {}

    def by_pool(self) -> Mapping[str, PoolNodes]:
        """Return the nodes by the names of their pools; a pool without nodes may be missing."""
        version = self._state.version, self._objects.version
        return self._pools.of(version, (), self._sorted)

    def _sorted(self) -> Mapping[str, PoolNodes]:
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
