"""What the nodes have for a pod at one moment, and what keeps it off them."""

from collections import Counter
from collections.abc import Sequence

from msgspec import msgpack
from msgspec.structs import replace

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.nodes import PriorityClass, Taint
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.preflight.decision import ResourceRoom, TaintedNodes
from gpuspawner.scheduling.contention import requests_with_pod
from gpuspawner.scheduling.could_hold import healthy
from gpuspawner.scheduling.device_claims import may_serve
from gpuspawner.scheduling.failures import Untolerated
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.node_affinity import node_choice
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.node_resources_fit import Asked, fits, wanted
from gpuspawner.scheduling.priority import BUILT_IN, priority_of
from gpuspawner.scheduling.requests import CPU, MEMORY, is_device, pod_requests
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.taint_toleration import untolerated

_encode = msgpack.Encoder().encode


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


class NodeCounts:
    """These counts, kept as long as the cluster stays as it is.

    A page asks about hundreds of pods. Most of them want the same devices and select the same
    nodes.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._most_free = UntilChanged[int]()
        self._taints = UntilChanged[tuple[TaintedNodes, ...]]()
        self._candidates = UntilChanged[tuple[NodeInfo, ...]]()
        self._rooms = UntilChanged[ResourceRoom]()

    def candidates(self, pod: Pod | None) -> tuple[NodeInfo, ...]:
        """Return the candidates; the same object for pods that select and tolerate the same."""
        if pod is None:
            return ()
        try:
            pod_requests(pod, self._state.rules)
        except QuantityError:
            return ()
        state, spec = self._state, pod.spec
        spread = spec.topology_spread_constraints  # only its errors matter
        key = _encode((spec.node_name, spec.node_selector, spec.affinity, spec.tolerations, spread))
        return self._candidates.of(state.version, key, lambda: candidates(state, pod))

    def room(self, nodes: tuple[NodeInfo, ...], resource: str, asked: int) -> ResourceRoom:
        """Return how much *nodes* have, which `candidates` has just returned."""
        key = id(nodes), resource  # the nodes are kept, so that no others get their id
        found = self._rooms.of(self._state.version, key, lambda: room(nodes, resource, asked))
        return replace(found, asked=asked)

    def shortage(
        self, pod: Pod, nodes: tuple[NodeInfo, ...], first: str | None
    ) -> ResourceRoom | None:
        """Return what *nodes* have too little of, which `candidates` has just returned.

        Raises:
            QuantityError: The pod's requests aren't quantities; it has no verdict either.
        """
        amount = pod_requests(pod, self._state.rules).get(first or "", 0)
        if first and nodes:
            room = self.room(nodes, first, amount)
            if room.most_free < amount:
                return room
        return shortage(self._state, pod, nodes, first)

    def lacks_devices(self, pod: Pod) -> bool:
        """Whether no node has as many devices free as the pod requests.

        Selectors, tolerations, other requests and volumes don't count here. Admission could raise
        the pod's priority, which ends other pods; if the cluster has a class for that, return
        False.
        """
        try:
            requests = pod_requests(pod, self._state.rules)
        except QuantityError:
            return False
        return not could_be_raised(self._state, pod) and any(
            is_device(resource) and self._free(resource) < amount
            for resource, amount in requests.items()
            if amount > 0
        )

    def taints(self, pod: Pod) -> tuple[TaintedNodes, ...]:
        """Return the taints that keep the pod off nodes with its devices, as `Refuse` has them.

        Raises:
            QuantityError: As `shortage`.
        """
        state, spec = self._state, pod.spec
        asked = wanted(pod_requests(pod, state.rules))
        key = _encode((spec.node_selector, spec.affinity, spec.tolerations, asked))
        return self._taints.of(state.version, key, lambda: _taints(state, pod, asked))

    def _free(self, resource: str) -> int:
        """Return the most of a resource that a node has free."""
        free = (node.free.get(resource, 0) for node in self._state.nodes.values())
        version = self._state.version
        return self._most_free.of(version, resource, lambda: max(free, default=0))


def could_be_raised(state: ClusterState, pod: Pod) -> bool:
    """Whether a PriorityClass that isn't built in is above the pod's priority."""
    priority = priority_of(pod, state)
    return not (state.known("PriorityClass") and priority.known) or any(
        its.value > priority.value
        for its in state.storage.all(PriorityClass)
        if its.metadata.name not in BUILT_IN
    )


def _taints(state: ClusterState, pod: Pod, asked: Asked) -> tuple[TaintedNodes, ...]:
    asked = tuple(it for it in asked if not may_serve(state, it[0]))  # a driver's aren't counted
    devices = [resource for resource, _ in asked if is_device(resource)]
    tolerations = pod.spec.tolerations or ()
    choice = node_choice(pod.spec)
    # Most nodes have no taints, and the others have few different ones.
    in_the_way: dict[tuple[Taint, ...], Untolerated | None] = {(): None}
    found: Counter[tuple[str, str, str]] = Counter()
    large: Counter[tuple[str, str, str]] = Counter()
    for node in state.nodes.values():
        if node.lasting_taints not in in_the_way:
            in_the_way[node.lasting_taints] = untolerated(node.lasting_taints, tolerations)
        taint = in_the_way[node.lasting_taints]
        if taint is None or not choice.matches(node.labels, node.name):
            continue
        amounts, kind = healthy(node), (taint.key, taint.value, taint.effect)
        if all(map(amounts.get, devices)):
            found[kind] += 1
            large[kind] += fits(asked, amounts)
    ordered = sorted(found.most_common(), key=lambda it: not large[it[0]])
    return tuple(TaintedNodes(*taint, count, large[taint]) for taint, count in ordered)
