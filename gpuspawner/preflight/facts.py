"""Counts the facts of a refusal on the nodes at the moment of the verdict."""

from collections.abc import Sequence

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.preflight.decision import ResourceRoom
from gpuspawner.scheduling.contention import requests_with_pod
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import CPU, MEMORY, pod_requests
from gpuspawner.scheduling.state import ClusterState


def candidates(state: ClusterState, pod: Pod | None) -> tuple[NodeInfo, ...]:
    """Return the nodes that the pod's selectors and tolerations allow and that aren't away.

    These are the nodes that pass the evaluation's static filters. A pod that can't be read has
    none, and no verdict either.
    """
    if pod is None:
        return ()
    try:
        return Filters(state, pod).screened().passing
    except (QuantityError, SelectorError):
        return ()


def room(nodes: Sequence[NodeInfo], resource: str, amount: int) -> ResourceRoom:
    """Return how much of a resource these nodes have for a pod that requests *amount*."""
    free = [max(0, node.free.get(resource, 0)) for node in nodes]
    there = [node.allocatable.get(resource, 0) for node in nodes]
    return ResourceRoom(
        resource, amount, max(free, default=0), sum(free), max(there, default=0), sum(there)
    )


def shortage(
    state: ClusterState, pod: Pod, nodes: Sequence[NodeInfo], first: str | None
) -> ResourceRoom | None:
    """Return the first resource that no node has enough of; None if resources aren't short.

    The order is *first* (the accelerator's resource), memory, CPU and the rest. For each resource,
    only nodes count that have enough of the resources before it.

    Raises:
        QuantityError: The pod's requests aren't quantities; it has no verdict either.
    """
    order = filter(None, (first, MEMORY, CPU))
    requests = requests_with_pod(pod_requests(pod, state.rules))
    known = [resource for resource in order if resource in requests]
    for resource in [*known, *sorted(requests.keys() - set(known))]:
        amount = requests[resource]
        enough = [node for node in nodes if node.free.get(resource, 0) >= amount]
        if not enough:
            return room(nodes, resource, amount) if nodes else None
        nodes = enough
    return None


def could_replace(state: ClusterState, key: str, pod: Pod) -> bool:
    """Whether *pod* would fit, by its requests, in the place of the pod ``namespace/name``.

    Raises:
        QuantityError: As `shortage`.
    """
    there = state.pods.get(key)
    node = state.nodes.get(there.node) if there else None
    if there is None or node is None:
        return False
    return all(
        node.free.get(resource, 0) + there.requested.get(resource, 0) >= amount
        for resource, amount in pod_requests(pod, state.rules).items()
    )
