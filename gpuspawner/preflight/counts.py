"""What the nodes have for a pod at one moment, and what keeps it off them."""

from collections import Counter
from collections.abc import Sequence

from msgspec import msgpack
from msgspec.structs import replace

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.nodes import PriorityClass, Taint
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.offers.grant import Grant
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


def room(nodes: Sequence[NodeInfo], resource: str, amount: int) -> ResourceRoom:
    """Return how much of a resource these nodes have for a pod that requests *amount*."""
    free = [max(0, node.free.get(resource, 0)) for node in nodes]
    there = [node.allocatable.get(resource, 0) for node in nodes]
    return ResourceRoom(
        resource, amount, max(free, default=0), sum(free), max(there, default=0), sum(there)
    )


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
    """Counts over all nodes, kept as long as the cluster stays as it is.

    A page asks about hundreds of pods. Most of them want the same devices and select the same
    nodes.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._most_free = UntilChanged[int]()
        self._taints = UntilChanged[tuple[TaintedNodes, ...]]()
        self._candidates = UntilChanged[tuple[NodeInfo, ...]]()
        self._rooms = UntilChanged[ResourceRoom]()

    def candidates(self, pod: Pod | None) -> tuple[NodeInfo, ...]:
        """Return the nodes that the pod's selectors and tolerations allow and that aren't away.

        These are the nodes that pass the evaluation's static filters: the same object for pods that
        select and tolerate the same. A pod that can't be read has none, and no verdict either.
        """
        if pod is None:
            return ()
        state, spec = self.state, pod.spec
        spread = spec.topology_spread_constraints  # only its errors matter
        key = _encode((spec.node_name, spec.node_selector, spec.affinity, spec.tolerations, spread))
        try:
            pod_requests(pod, state.rules)
            return self._candidates.of(
                state.version, key, lambda: Filters(state, pod).screened().passing
            )
        except (QuantityError, SelectorError):
            return ()

    def room(self, nodes: tuple[NodeInfo, ...], resource: str, asked: int) -> ResourceRoom:
        """Return how much *nodes* have, which `candidates` has just returned."""
        key = id(nodes), resource  # the nodes are kept, so that no others get their id
        found = self._rooms.of(self.state.version, key, lambda: room(nodes, resource, asked))
        return replace(found, asked=asked)

    def gpus(self, nodes: tuple[NodeInfo, ...], grant: Grant) -> ResourceRoom | None:
        """As `room`, of a grant's GPUs; None for a grant without any."""
        accelerator = grant.accelerator
        return self.room(nodes, accelerator.resource, grant.gpus) if accelerator else None

    def shortage(self, pod: Pod, nodes: tuple[NodeInfo, ...], grant: Grant) -> ResourceRoom | None:
        """Return the first resource that none of *nodes* has enough of; None if none is short.

        The order is the grant's GPUs, memory, CPU and the rest. For each resource, only nodes count
        that have enough of the resources before it. `candidates` has just returned the nodes.

        Raises:
            QuantityError: The pod's requests aren't quantities; it has no verdict either.
        """
        requests = requests_with_pod(pod_requests(pod, self.state.rules))
        first = grant.accelerator.resource if grant.accelerator else None
        if first and nodes:
            devices = self.room(nodes, first, requests.get(first, 0))
            if devices.most_free < devices.asked:
                return devices
        known = [it for it in (first, MEMORY, CPU) if it and it in requests]
        left: Sequence[NodeInfo] = nodes
        for resource in [*known, *sorted(requests.keys() - set(known))]:
            amount = requests[resource]
            enough = [node for node in left if node.free.get(resource, 0) >= amount]
            if not enough:
                return room(left, resource, amount) if left else None
            left = enough
        return None

    def lacks_devices(self, pod: Pod) -> bool:
        """Whether no node has as many devices free as the pod requests.

        Selectors, tolerations, other requests and volumes don't count here. Admission could raise
        the pod's priority, which ends other pods; if the cluster has a class for that, return
        False.
        """
        try:
            requests = pod_requests(pod, self.state.rules)
        except QuantityError:
            return False
        return not could_be_raised(self.state, pod) and any(
            is_device(resource) and self._free(resource) < amount
            for resource, amount in requests.items()
            if amount > 0
        )

    def taints(self, pod: Pod) -> tuple[TaintedNodes, ...]:
        """Return the taints that keep the pod off nodes with its devices, as `Refuse` has them.

        Raises:
            QuantityError: As `shortage`.
        """
        state, spec = self.state, pod.spec
        asked = wanted(pod_requests(pod, state.rules))
        key = _encode((spec.node_selector, spec.affinity, spec.tolerations, asked))
        return self._taints.of(state.version, key, lambda: _taints(state, pod, asked))

    def _free(self, resource: str) -> int:
        """Return the most of a resource that a node has free."""
        free = (node.free.get(resource, 0) for node in self.state.nodes.values())
        version = self.state.version
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
