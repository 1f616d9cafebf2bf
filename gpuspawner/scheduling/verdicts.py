"""Verdicts for many pods at one moment; pods that are alike are evaluated once.

A class that starts together sends many equal pods.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property, partial

import msgspec
from msgspec import msgpack, structs

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.objects import UNDECODABLE, Manifest, strict_convert
from gpuspawner.kube.pods import Affinity, Pod, Volume
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.storage import PersistentVolumeClaim

from .certainty import uncertain
from .contention import Demand, requests_with_pod
from .evaluate import evaluate, fits_somewhere, fitting_nodes, lacks_node, preempting_nodes
from .node_info import NodeInfo, pod_key
from .node_ports import host_ports
from .node_resources_fit import Asked, fits
from .node_volume_limits import VolumeLimits
from .pod_claims import ONE_POD, PodClaims, claim_name, needs_of, pod_claims, with_default_class
from .priority import priority_of
from .requests import Amounts, pod_requests
from .rules import DEFAULT_RULES
from .state import ClusterState
from .verdict import Outcome, Verdict
from .volume_candidates import candidates

_encode = msgpack.Encoder(order="deterministic").encode

_FEW = 64
"""On how many nodes volumes are counted. Of more, fewer starts than there are leave one."""

PodShape = tuple[object, ...]
"""Equal for pods with equal verdicts."""


class Subject(msgspec.Struct, frozen=True, dict=True):
    """The pod to evaluate, and PersistentVolumeClaims that will exist before it."""

    pod: Pod
    new_claims: tuple[Manifest, ...] = ()

    @cached_property
    def shape(self) -> PodShape:
        """Everything that the verdict can depend on, but for labels and the name.

        Volumes of kinds that we don't read have generated names (service account tokens, say) and
        never decide. Each look at the promises asks for the shapes of all.
        """
        pod = self.pod
        volumes = [volume for volume in pod.spec.volumes or () if volume != Volume(volume.name)]
        spec = _encode(structs.replace(pod.spec, volumes=volumes))
        return pod.metadata.namespace, spec, _encode(self.new_claims)


class Verdicts:
    """Evaluates pods against a state, which it only reads."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._verdicts = UntilChanged[Verdict]()
        self._fitting = UntilChanged[bool]()
        self._lacking = UntilChanged[bool]()
        self._nodes = UntilChanged[frozenset[str]]()
        self._demands = UntilChanged[Demand | None]()
        self._alike = UntilChanged[Demand]()
        self._roomy = UntilChanged[bool]()
        self._most = UntilChanged[Amounts]()
        self._with_lower = UntilChanged[list[NodeInfo]]()
        self._attached = UntilChanged[tuple[set[tuple[str, str]], Counter[str]]]()

    def verdict(self, subject: Subject) -> Verdict:
        """Return what kube-scheduler would do with the pod at this moment."""
        state, claims = self._state, subject.new_claims
        find = partial(evaluate, state, subject.pod, new_claims=claims)
        return self._verdicts.of(state.version, self.shape(subject), find)

    def fits(self, subject: Subject) -> bool:
        """Whether the pod fits at this moment; cheaper than a verdict, which names all nodes."""
        state, claims, shape = self._state, subject.new_claims, self.shape(subject)
        if (known := self._verdicts.find(state.version, shape)) is not None:
            return known.outcome is Outcome.FITS
        find = partial(fits_somewhere, state, subject.pod, new_claims=claims)
        return self._fitting.of(state.version, shape, find)

    def lacks_node(self, subject: Subject) -> bool:
        """Return `Verdict.lacks_node` of a pod without new claims, for less than a verdict."""
        state, shape = self._state, self.shape(subject)
        if (known := self._verdicts.find(state.version, shape)) is not None:
            return known.lacks_node
        return self._lacking.of(state.version, shape, partial(lacks_node, state, subject.pod))

    def nodes(self, subject: Subject) -> frozenset[str]:
        """Return the nodes on which the pod fits at this moment; none costs less than a verdict."""
        state, claims, shape = self._state, subject.new_claims, self.shape(subject)
        if (known := self._verdicts.find(state.version, shape)) is not None:
            return frozenset(known.feasible if known.outcome is Outcome.FITS else ())
        find = partial(fitting_nodes, state, subject.pod, new_claims=claims)
        return self._nodes.of(state.version, shape, lambda: frozenset(find()))

    def demand(self, subject: Subject) -> Demand | None:
        """Return the room that the pod may take at this moment, also by preemption; None if none.

        Demands that differ at most in their claims have the same object as their requests.
        """
        version, pod = self._state.version, subject.pod
        # Claims of ephemeral volumes have the pod's name, though the verdict is that of all alike.
        has_own = any(it.ephemeral for it in pod.spec.volumes or ())
        key = (*self.shape(subject), pod.metadata.name if has_own else "")
        return self._demands.of(version, key, lambda: self._demand(subject))

    def may_fit(self, asked: Asked, priority: int | None) -> bool:
        """Whether a pod may have a `demand` by its requests alone: all other rules exclude nodes.

        It may end pods of lower priority. None: nobody knows its priority.
        """

        def find() -> bool:
            if fits(asked, self._most_free()) and any(fits(asked, it.free) for it in nodes):
                return True
            lower = self._with_lower.of(version, priority, find_lower)
            return any(fits(asked, it.allocatable) for it in lower)

        def find_lower() -> list[NodeInfo]:
            return [it for it in nodes if priority is None or it.has_below(priority)]

        version, nodes = self._state.version, self._state.nodes.values()
        return self._roomy.of(version, (asked, priority), find)

    def _most_free(self) -> Amounts:
        """Return the most that any node has free of each resource."""

        def find() -> Amounts:
            most: dict[str, int] = {}
            for node in self._state.nodes.values():
                for resource, amount in node.free.items():
                    most[resource] = max(amount, most.get(resource, 0))
            return most

        return self._most.of(self._state.version, (), find)

    def following(self, subject: Subject) -> Demand | None:
        """Return the room that a pod may take once others have ended pods; None if it may do so."""
        able = subject.pod.with_spec(preemption_policy="PreemptLowerPriority")
        found = None if able == subject.pod else self.demand(structs.replace(subject, pod=able))
        if found is None or found.below is None:
            return None
        requests, nodes, simple = found.requests, found.nodes, found.simple
        return Demand(requests, nodes, simple, priority=found.below, follows=True)

    def demand_anywhere(self, subject: Subject) -> Demand:
        """Return the room that a pod may take if nobody knows on which node."""
        try:
            requests = requests_with_pod(pod_requests(subject.pod, self._state.rules))
        except QuantityError:
            return Demand({}, None, simple=False)
        return Demand(requests, None, alone=self._claims(subject).alone(subject.pod))

    def demand_on(self, subject: Subject, node: str) -> Demand:
        """Return the room that a pod may take on the node for which it is nominated."""
        there = self._state.nodes.keys() & {node}
        volumes = self._volumes(subject.pod, self._claims(subject), there)
        anywhere, own = self.demand_anywhere(subject), subject.pod.spec.priority or 0
        below = own if _may_end_others(subject.pod) else None
        here = structs.replace(anywhere, nodes=frozenset({node}), volumes=volumes)
        return structs.replace(here, below=below, nominated=own)

    def _demand(self, subject: Subject) -> Demand | None:
        state, pod = self._state, subject.pod
        nodes, simple, below = self.nodes(subject), is_simple(pod), None
        own = priority_of(pod, state)
        if not nodes:
            if not subject.new_claims and self.lacks_node(subject):  # for less than a verdict
                return None
            if self.verdict(subject).outcome is not Outcome.FITS_AFTER_PREEMPTION:
                return None
            helped = preempting_nodes(state, pod, new_claims(subject))
            nodes, below = frozenset(it.name for it in helped), own.value
            simple = simple and not any(uncertain(state, it) for it in helped)
        requests, claims = requests_with_pod(pod_requests(pod, state.rules)), self._claims(subject)
        limits = VolumeLimits(pod, claims, state.storage, state.rules)
        left = self._attachable(limits, nodes)
        if left:
            requests = {**requests, **limits.asked}
        priority = own.value if own.known and own.preempts else None
        demand = Demand(requests, nodes, simple, below=below, priority=priority, attachable=left)
        value = (frozenset(requests.items()), nodes, simple, below, priority, str(left))
        alike = self._alike.of(state.version, value, lambda: demand)
        alone, volumes = claims.alone(pod), self._volumes(pod, claims, nodes)
        if len(state.nodes) > 1:  # the first pod's node decides which of them reach such a volume
            unplaced = (it for it in claims.unplaced if not candidates(it, state.storage).anywhere)
            alone |= {pod_key(pod.metadata.namespace, it.metadata.name) for it in unplaced}
        return structs.replace(alike, alone=alone, volumes=volumes) if alone or volumes else alike

    def _attachable(self, limits: VolumeLimits, nodes: frozenset[str]) -> dict[str, dict[str, int]]:
        """Return how many volumes of the pod's drivers the nodes can have, those with a limit."""
        state, found = self._state, dict[str, dict[str, int]]()
        for name in sorted(nodes) if limits.needed and len(nodes) <= _FEW else ():
            if state.storage.volume_limits(name):
                pods = state.nodes[name].claimants.values()
                count = partial(limits.attached_to, name, pods)
                left = limits.left(name, *self._attached.of(state.version, name, count))
                found |= {name: left} if left else {}
        return found

    def _claims(self, subject: Subject) -> PodClaims:
        """Return the claims that the pod can use."""
        try:
            claims = pod_claims(subject.pod, self._state.storage, new_claims(subject))
        except UNDECODABLE:  # then its verdict is unknown
            return PodClaims()
        return claims if isinstance(claims, PodClaims) else PodClaims()

    def _volumes(
        self, pod: Pod, claims: PodClaims, nodes: Iterable[str]
    ) -> tuple[tuple[str, frozenset[str]], ...]:
        """Return the volumes that each claim can take on the nodes, if none can be made for it."""
        storage = self._state.storage
        found = [(it, candidates(it, storage)) for it in claims.static(storage)]
        labels = [self._state.nodes[it].labels for it in nodes if found]
        return tuple(
            (pod_key(pod.metadata.namespace, claim.metadata.name), its.free_for(labels))
            for claim, its in found
            if not its.reserved
        )

    def shape(self, subject: Subject) -> PodShape:
        """Return everything that the verdict can depend on at this moment.

        Labels and the name count only if `depends_on_labels`.
        """
        pod = subject.pod
        if not self.depends_on_labels(pod):
            return subject.shape
        return *subject.shape, _encode(pod.metadata.labels), pod.metadata.name

    def depends_on_labels(self, pod: Pod) -> bool:
        """Whether the verdict depends on the pod's labels and name.

        Pods select each other, or something is there for this pod only. The anti-affinity of
        running pods is usually about their own namespace.
        """
        is_repelled = bool(self._state.pods.repelling(pod.metadata.namespace))
        return is_repelled or not is_simple(pod) or self._has_its_own(pod)

    def _has_its_own(self, pod: Pod) -> bool:
        """Whether a node keeps room for the pod, or a claim of its ephemeral volumes exists."""
        state, namespace = self._state, pod.metadata.namespace
        mine = state.unbound_pods.get(pod_key(namespace, pod.metadata.name))
        names = (claim_name(pod, it) for it in pod.spec.volumes or () if it.ephemeral)
        return bool(mine and mine.status.nominated_node_name) or any(
            state.storage.get(PersistentVolumeClaim, name, namespace) for name in names if name
        )

    def places(self, subject: Subject) -> bytes:
        """Return a key that is equal for pods whose volumes new nodes reach in the same places.

        Most users' homes have the same key. It changes only with `ClusterState.lasting_version`.
        """
        return _encode(self._all_places(subject))

    def _all_places(self, subject: Subject) -> list[object]:
        volumes = subject.pod.spec.volumes or ()
        return [self._places(subject, it) for it in volumes if it != Volume(it.name)]

    def shape_of_needs(self, subject: Subject) -> bytes:
        """Return what a new node must have for the pod; equal for two users' servers.

        Of a volume, only its driver counts and the places from which a node can reach it, unless
        only one pod may use it at a time. Of one that has yet to be made, all that the claim asks
        for: a larger home may find no space where a smaller one does. Claims of devices count by
        their names in the pod: nobody here knows which nodes have these devices.
        """
        spec, rules = subject.pod.spec, self._state.rules
        return _encode(
            (
                sorted(pod_requests(subject.pod, rules).items()),
                spec.node_name,
                sorted((spec.node_selector or {}).items()),
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.scheduler_name,
                spec.resource_claims,
                host_ports(subject.pod, rules),
                self._all_places(subject),
            )
        )

    def shape_on_new_nodes(self, subject: Subject) -> object:
        """Return a key that is equal for pods to which new nodes are the same."""
        return (self.shape_of_needs if is_simple(subject.pod) else self.shape)(subject)

    def _places(self, subject: Subject, volume: Volume) -> object:
        if volume.persistent_volume_claim is None:
            return structs.replace(volume, name="")
        storage, namespace = self._state.storage, subject.pod.metadata.namespace
        name = volume.persistent_volume_claim.claim_name
        claim = storage.get(PersistentVolumeClaim, name, namespace)
        if claim is None:
            new = (it for it in new_claims(subject) if it.metadata.name == name)
            claim = next((with_default_class(it, storage) for it in new), None)
        if claim is None:
            return None
        alone = pod_key(namespace, name) if ONE_POD in (claim.spec.access_modes or ()) else ""
        return alone, *needs_of(claim, storage)


def new_claims(subject: Subject) -> list[PersistentVolumeClaim]:
    """Return the claims that will exist before the pod."""
    return [strict_convert(it, PersistentVolumeClaim) for it in subject.new_claims]


def is_simple(pod: Pod) -> bool:
    """Whether the pod's binding affects other pods only by the amounts it takes.

    The space in which a driver makes volumes doesn't count.
    """
    affinity = pod.spec.affinity or Affinity()
    return not (
        host_ports(pod, DEFAULT_RULES)
        or (affinity.pod_affinity and affinity.pod_affinity.required)
        or (affinity.pod_anti_affinity and affinity.pod_anti_affinity.required)
        or any(
            constraint.when_unsatisfiable == "DoNotSchedule"
            for constraint in pod.spec.topology_spread_constraints or ()
        )
    )


def _may_end_others(pod: Pod) -> bool:
    """Whether a nominated pod may have its node because others end there.

    With a nomination for preemption, the scheduler writes the condition ``PodScheduled``, which is
    false until the pod is bound (`handleSchedulingFailure`, schedule_one.go, v1.36.2). Since 1.35,
    it also nominates a pod for as long as volumes are made for it (`bindingCycle`), and writes no
    condition. The API server writes the one about gates, which may be gone since.
    """
    return any(
        it.type == "PodScheduled" and it.status == "False" and it.reason != "SchedulingGated"
        for it in pod.status.conditions or ()
    )
