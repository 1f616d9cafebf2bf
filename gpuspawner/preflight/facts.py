"""The facts of a refusal, counted on the nodes at the moment of the verdict."""

from collections import Counter
from collections.abc import Sequence

from gpuspawner.kube.nodes import PriorityClass
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.offers import Accelerator
from gpuspawner.preflight.contention import requests_with_pod
from gpuspawner.preflight.decision import Room, TaintedNodes
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.node_affinity import node_choice
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.outcome import AWAY_TAINTS
from gpuspawner.scheduling.priority import BUILT_IN, priority_of
from gpuspawner.scheduling.requests import CPU, MEMORY, is_extended, pod_requests
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.taint_toleration import untolerated


def candidates(state: ClusterState, pod: Pod) -> list[NodeInfo]:
    """The nodes that the pod's selectors and tolerations allow and that are not away.

    They are those that the evaluation keeps for pods of this kind; none for a pod whose requests
    or selectors cannot be read, which has no verdict either.
    """
    try:
        return list(Filters(state, pod).screen().passing)
    except (QuantityError, SelectorError):
        return []


def room(nodes: Sequence[NodeInfo], resource: str, amount: int) -> Room:
    """How much of a resource these nodes have, against the amount asked."""
    free = [max(0, node.free.get(resource, 0)) for node in nodes]
    there = [node.allocatable.get(resource, 0) for node in nodes]
    return Room(
        resource, amount, max(free, default=0), sum(free), max(there, default=0), sum(there)
    )


def gpus(nodes: Sequence[NodeInfo], accelerator: Accelerator | None, count: int) -> Room | None:
    """How many of an accelerator's GPUs these nodes have; None without an accelerator."""
    return None if accelerator is None else room(nodes, accelerator.resource, count)


def shortage(
    state: ClusterState, pod: Pod, nodes: Sequence[NodeInfo], first: str | None
) -> Room | None:
    """The first resource of which no node has enough free that has enough of those before it.

    Args:
        state: What is known of the cluster.
        pod: What asks.
        nodes: Its candidates.
        first: The resource to begin with, the accelerator's; then come memory, CPU and the rest.

    Raises:
        QuantityError: The pod's requests are no quantities; such a pod has no verdict either.
    """
    order = (first, MEMORY, CPU)
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
    """Whether the pod of this key is on a node that has enough for another one without it.

    Args:
        state: What is known of the cluster.
        key: Namespace and name of a pod, with a slash between them.
        pod: The other one, whose requests are quantities.
    """
    there = state.pods.get(key)
    node = state.nodes.get(there.node) if there else None
    if there is None or node is None:
        return False
    return all(
        node.free.get(resource, 0) + there.requested.get(resource, 0) >= amount
        for resource, amount in pod_requests(pod, state.rules).items()
    )


def lacks_devices(state: ClusterState, pod: Pod) -> bool:
    """Whether no node at all has as many devices free as the pod asks for.

    Selectors and tolerations, other requests and volumes are left out. A higher priority could end
    pods for this one, so where there are classes for that, nothing can be said.
    """
    try:
        requests = pod_requests(pod, state.rules)
    except QuantityError:
        return False
    return not _could_be_raised(state, pod) and any(
        is_extended(resource)
        and all(it.free.get(resource, 0) < amount for it in state.nodes.values())
        for resource, amount in requests.items()
        if amount > 0
    )


def _could_be_raised(state: ClusterState, pod: Pod) -> bool:
    """Whether a PriorityClass of the cluster's own is above the pod's priority."""
    all_known = state.known("PriorityClass")
    priority = priority_of(pod, state.storage, all_known=all_known)
    return not (all_known and priority.known) or any(
        its.value > priority.value
        for its in state.storage.all(PriorityClass)
        if its.metadata.name not in BUILT_IN
    )


def taints(state: ClusterState, pod: Pod) -> tuple[TaintedNodes, ...]:
    """The taints that keep the pod off nodes that its selectors allow, most frequent first."""
    tolerations = pod.spec.tolerations or ()
    found: Counter[tuple[str, str, str]] = Counter()
    for node in _selected(state, pod):
        lasting = [taint for taint in node.taints if taint.key not in AWAY_TAINTS]
        taint = untolerated(lasting, tolerations)
        if taint is not None:
            found[taint.key, taint.value, taint.effect] += 1
    return tuple(TaintedNodes(*taint, nodes=count) for taint, count in found.most_common())


def _selected(state: ClusterState, pod: Pod) -> list[NodeInfo]:
    choice = node_choice(pod.spec)
    return [node for node in state.nodes.values() if choice.matches(node.labels, node.name)]
