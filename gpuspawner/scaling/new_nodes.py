"""The nodes that one pool can still bring, as one pod sees them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import msgspec
from msgspec import structs

from gpuspawner.kube.meta import NodeSelector, NodeSelectorTerm
from gpuspawner.kube.pods import Affinity, Pod, PodAffinity
from gpuspawner.offers.vendors import HOSTNAME, INSTANCE_TYPE, NAMELESS
from gpuspawner.scaling.node_pool import Growth, Machine, arriving, kind, like, new_node
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode
from gpuspawner.scaling.starting_nodes import (
    expected_devices,
    expected_labels,
    has_lost_devices,
    is_starting,
)
from gpuspawner.scheduling.contention import Demand, requests_with_pod
from gpuspawner.scheduling.could_hold import would_hold
from gpuspawner.scheduling.device_claims import judged_on, may_serve
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.node_resources_fit import fits
from gpuspawner.scheduling.priority import priority_of
from gpuspawner.scheduling.requests import is_device
from gpuspawner.scheduling.shared_gpus import refuses, several
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts, is_simple, new_claims

# A pool without a limit, in a hub where nobody else waits, needs one node.
_UNLIMITED = 10**6


class Judged(msgspec.Struct, frozen=True, dict=True):
    """A pod, prepared to be judged on nodes that don't exist yet.

    Attributes:
        exact: Its filters.
        subject: The pod, with the claims that will exist before it.
    """

    exact: Filters
    subject: Subject

    @classmethod
    def of(cls, state: ClusterState, subject: Subject) -> "Judged":
        """Prepare a pod.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: It can't be evaluated.
        """
        return cls(Filters(state, subject.pod, new_claims(subject)), subject)

    @cached_property
    def elsewhere(self) -> Filters:
        """Its filters if it weren't bound to a zone."""
        return Filters(self.exact.state, without_place(self.exact.pod))

    def holds(self, slot: Machine) -> bool:
        """Whether the node would hold this pod; an administrator's word is taken."""
        return slot.is_trusted or _holds(self.exact, slot.node)

    def demand(self, slots: Mapping[str, Machine]) -> Demand:
        """Return the room that the pod may take on these nodes."""
        # A pool's further nodes are one and the same slot, so each is judged once.
        different = {id(slot): slot for slot in slots.values()}
        fitting = {it for it, slot in different.items() if self._may_take(slot)}
        names = frozenset(name for name, slot in slots.items() if id(slot) in fitting)
        exact, pod = self.exact, self.exact.pod
        requests = requests_with_pod(dict(exact.asked))
        return Demand(requests, names, is_simple(pod), exact.claims.alone(pod))

    def may_preempt(self, other: Pod) -> bool:
        """Whether the scheduler would end the other pod for this one."""
        state, mine = self.exact.state, self.exact.priority
        theirs = priority_of(other, state)
        return mine.known and mine.preempts and theirs.known and theirs.value < mine.value

    def competes_with(self, other: "Judged") -> bool:
        """Whether both want the same devices, or select nodes in the same way."""
        mine, theirs = self.exact.pod.spec, other.exact.pod.spec
        devices = {resource for resource, _ in self.exact.asked if is_device(resource)}
        if devices:
            return any(resource in devices for resource, _ in other.exact.asked)
        return (mine.node_selector, mine.affinity) == (theirs.node_selector, theirs.affinity)

    def is_no_larger(self, other: "Judged", verdicts: Verdicts) -> bool:
        """Whether each new node for the other pod would hold this one alone, too."""
        most, theirs = dict(other.exact.asked), other.subject.pod.spec
        if any(amount > most.get(resource, 0) for resource, amount in self.exact.asked):
            return False
        equal = self.subject.pod.with_spec(
            containers=theirs.containers,
            init_containers=theirs.init_containers,
            resources=theirs.resources,
            overhead=theirs.overhead,
        )
        needs = verdicts.shape_of_needs(structs.replace(self.subject, pod=equal))
        return needs == verdicts.shape_of_needs(other.subject)

    def _may_take(self, slot: Machine) -> bool:
        if not slot.is_trusted:
            return _holds(self.exact, slot.node)
        labels, selected = slot.node.labels, self.exact.choice.labels
        is_meant = all(selected.get(key) == labels[key] for key in labels if key != HOSTNAME)
        return is_meant and fits(self.exact.asked, slot.node.free)


def _holds(filters: Filters, node: NodeInfo) -> bool:
    return (
        filters.rejected is None
        and filters.fixed_failure(node) is None
        and would_hold(filters, node, node.free)
        and not refuses(node, several(filters.pod))
    )


def _might_hold(filters: Filters, node: NodeInfo) -> bool:
    """Whether a node would hold a pod with what its drivers might serve, which nobody knows yet."""
    return _holds(judged_on(filters, node), node)


def may_hold_soon(filters: Filters, node: NodeInfo) -> bool:
    """Whether a node that is still starting may hold a pod once it is ready.

    Finished nodes of its type tell how many devices it will have, and of which model. If there is
    none, nobody knows before it shows them.
    """
    if not is_starting(node, filters):
        return False
    its_type = node.labels.get(INSTANCE_TYPE, "")
    devices = {it: amount for it, amount in filters.asked if is_device(it)}
    finished = {  # one of each kind: there may be hundreds
        kind(it): it
        for it in filters.state.nodes.values()
        if its_type not in NAMELESS
        and it.labels.get(INSTANCE_TYPE) == its_type
        and not is_starting(it, filters)
    }
    models = [like(it) for it in finished.values() if all(map(it.allocatable.get, devices))]
    if not models:
        lacking = expected_devices(node, filters)
        if finished and lacking and not has_lost_devices(node, filters):
            return False  # machines of its type have none
        expected = {it: devices[it] for it in lacking}
        labels = {**expected_labels(filters), **node.labels}
        models = [new_node(node.name, labels, (), {**like(node).allocatable, **expected})]
    return any(_might_hold(filters, arriving(node, it)) for it in models)


class Future(msgspec.Struct, frozen=True):
    """What one pool can still bring for one pod.

    Attributes:
        slots: The nodes that it is known to bring, on their way or not; at most as many as asked.
        is_possible: Whether it may bring a node for the pod, but nobody knows.
        obstacle: Why it brings none; None if it does or may.
    """

    growth: Growth
    slots: tuple[Machine, ...]
    is_possible: bool
    obstacle: Obstacle | None

    @classmethod
    def of(cls, growth: Growth, pod: Judged, most: int) -> "Future":
        """Return what a pool can bring for a pod, in at most *most* further nodes."""
        coming = [Machine(node, 0) for node in growth.coming]
        holding, similar = _holding(growth, pod), _similar(growth, pod)
        is_open = _is_open(growth, pod)
        addable = [] if growth.obstacle else [it for it in holding if it.left != 0]
        # Machines of one pool share its limits, so only one kind counts.
        best = max(addable, key=_left, default=None)
        added = [best] * min(_left(best), most) if best else []
        slots = (*coming, *added)
        might = is_open or any(it.left != 0 for it in similar)
        is_possible = _is_requested(growth, pod) or (might and not growth.obstacle)
        if is_possible or added:
            return cls(growth, slots, is_possible, None)
        helps = holding or similar or is_open
        why = _end(growth) if helps else Obstacle(WhyNoNode.NO_SUCH_MACHINE, growth.pool)
        if holding and why.why is WhyNoNode.NO_SUCH_MACHINE:
            # The autoscaler says so, but the pool has made such a machine: it can't for now.
            # Karpenter, for one, leaves out a pool whose types aren't available at the cloud, and
            # tells only what is wrong with the others.
            why = structs.replace(why, why=WhyNoNode.REFUSED)
        return cls(growth, slots, is_possible, why)

    def after(self, pod: Judged) -> "Future":
        """Return what the pool can bring for a pod when it has brought these slots."""
        growth, added = self.growth, len(self.slots) - len(self.growth.coming)
        machines = [
            it if it.left is None else structs.replace(it, left=max(0, it.left - added))
            for it in growth.machines
        ]
        nodes = growth.nodes + added
        rest = replace(growth, nodes=nodes, machines=tuple(machines), coming=())
        return Future.of(rest, pod, 1)

    def serves(self, pod: Judged) -> bool:
        """Whether the pool can or may bring a node for this pod."""
        return self.is_possible or any(map(pod.holds, self.slots))


def could_serve(growth: Growth, pod: Judged) -> bool:
    """Whether some node of the pool might hold the pod, if it could add all kinds."""
    known = _is_requested(growth, pod) or _holding(growth, pod) or _similar(growth, pod)
    return bool(known or _is_open(growth, pod))


def is_served(growth: Growth, pod: Judged) -> bool:
    """Whether the pool surely brings a node for the pod, if nobody else waits."""
    return any(map(pod.holds, Future.of(growth, pod, 1).slots))


def is_beyond(growth: Growth, pod: Judged) -> bool:
    """Whether the pod asks for more of something than the pool can still bring."""
    state = pod.exact.state
    return any(
        amount > growth.most(resource)
        for resource, amount in pod.exact.asked
        if not may_serve(state, resource)
    )


def _left(machine: Machine) -> int:
    return _UNLIMITED if machine.left is None else machine.left


def _holding(growth: Growth, pod: Judged) -> list[Machine]:
    return [it for it in growth.machines if it.is_trusted or _holds(pod.exact, it.node)]


def _similar(growth: Growth, pod: Judged) -> list[Machine]:
    """Return the machines of which another one might hold the pod, in another zone, say."""
    if growth.requirements is None:
        return [it for it in growth.machines if _might_hold(pod.elsewhere, it.node)]
    if not growth.requirements.allow(pod.exact):
        return []
    machines = growth.machines
    return [it for it in machines if fits(judged_on(pod.exact, it.node).asked, it.node.free)]


def _is_open(growth: Growth, pod: Judged) -> bool:
    """Whether a kind of node that the pool hasn't shown yet might hold the pod."""
    return not growth.is_complete and _is_allowed(growth, pod)


def _is_requested(growth: Growth, pod: Judged) -> bool:
    """Whether a node is on its way that might hold the pod, as far as anybody knows."""
    if any(_might_hold(pod.exact, node) for node in growth.coming):
        return True
    return growth.requested > 0 and _is_allowed(growth, pod)


def _is_allowed(growth: Growth, pod: Judged) -> bool:
    return growth.requirements is None or growth.requirements.allow(pod.exact)


def _end(growth: Growth) -> Obstacle:
    """Return why a pool whose nodes would help adds none."""
    if growth.obstacle is not None:
        return growth.obstacle
    if growth.max_nodes is not None and growth.nodes >= growth.max_nodes:
        return Obstacle(WhyNoNode.AT_MAXIMUM, growth.pool, nodes=growth.nodes)
    return Obstacle(WhyNoNode.LIMIT, growth.pool)


# A pod without what binds it to a zone.
#
# A pool's next node may be in another zone than its present ones, so a pod that these wouldn't hold
# only because of their zone may still get a node.

_PLACES = ("/zone", "/region")


def without_place(pod: Pod) -> Pod:
    """Return the pod without volumes, and without all selectors and rules about zones."""
    spec = pod.spec
    selector = {
        key: value for key, value in (spec.node_selector or {}).items() if not key.endswith(_PLACES)
    }
    spread = [
        it for it in spec.topology_spread_constraints or () if not it.topology_key.endswith(_PLACES)
    ]
    return pod.with_spec(
        volumes=None,
        node_selector=selector,
        affinity=_affinity(spec.affinity),
        topology_spread_constraints=spread,
    )


def _affinity(affinity: Affinity | None) -> Affinity | None:
    if affinity is None:
        return None
    nodes = affinity.node_affinity
    return structs.replace(
        affinity,
        node_affinity=nodes and structs.replace(nodes, required=_required(nodes.required)),
        pod_affinity=_pods(affinity.pod_affinity),
        pod_anti_affinity=_pods(affinity.pod_anti_affinity),
    )


def _pods(affinity: PodAffinity | None) -> PodAffinity:
    terms = (affinity.required if affinity else None) or ()
    return PodAffinity([it for it in terms if not it.topology_key.endswith(_PLACES)])


def _required(required: NodeSelector | None) -> NodeSelector | None:
    if required is None or not required.node_selector_terms:
        return required
    terms = []
    for term in required.node_selector_terms:
        expressions = term.match_expressions or ()
        kept = tuple(it for it in expressions if not it.key.endswith(_PLACES))
        if not kept and term.match_expressions and not term.match_fields:
            return None  # the term is about zones alone, so any node of the right zone matches
        terms.append(NodeSelectorTerm(kept or None, term.match_fields))
    return NodeSelector(tuple(terms))
