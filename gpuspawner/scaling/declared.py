"""Node pools for which an administrator declares autoscaling: ``scale_up``.

An autoscaler reacts only to Pending pods, so a refusal never triggers it. If a new node would help,
the spawner must therefore create the pod, and tell the user how long that usually takes.
"""

from gpuspawner.offers.shapes import thaw
from gpuspawner.scaling.node_pool import Growth, Machine, arriving, kind, like, new_node
from gpuspawner.scaling.outlook import Source
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scaling.starting_nodes import is_starting
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_affinity import node_choice, selecting
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import PODS
from gpuspawner.scheduling.state import ClusterState


def growth(state: ClusterState, pool: DeclaredPool, filters: Filters) -> Growth:
    """Return how a declared pool can grow for the pod of *filters*.

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
