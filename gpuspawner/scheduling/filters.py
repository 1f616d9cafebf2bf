"""All filter rules of kube-scheduler's default profile for one pod, in the scheduler's order.

A `Filters` serves one evaluation and holds the results that the scheduler calculates in PreFilter.
Nothing here changes the state.
"""

from collections.abc import Iterable

import msgspec

from gpuspawner.kube.nodes import Namespace
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.storage import PersistentVolumeClaim

from . import node_ports, node_resources_fit, volume_restrictions
from .failures import (
    ClaimInUse,
    Cordoned,
    DiskInUse,
    Failure,
    Failures,
    OtherNode,
    PortTaken,
    Rejected,
    Unselected,
)
from .inter_pod_affinity import Nearness, pod_choice
from .node_affinity import CONFLICT, named_nodes, node_choice
from .node_info import Leaving, NodeInfo, PodInfo, free_after, pod_key, pods_after
from .node_volume_limits import VolumeLimits
from .pod_claims import PodClaims, pod_claims
from .pod_topology_spread import Spread, compile_constraints, domains
from .priority import priority_of
from .requests import Amounts, is_device, pod_requests
from .rules import DEFAULT_SCHEDULER, as_version_reads
from .state import ClusterState
from .static_filters import Screened, StaticRules
from .taint_toleration import UNSCHEDULABLE, any_tolerates, untolerated
from .volume_binding import Binding

Pods = tuple[PodInfo, ...]


class Filters:
    """The filter rules, prepared for one pod."""

    def __init__(
        self,
        state: ClusterState,
        pod: Pod,
        new_claims: Iterable[PersistentVolumeClaim] = (),
    ) -> None:
        """Compile the pod's requirements. `new_claims` are created before the pod.

        Raises:
            QuantityError: a request of the pod isn't a quantity.
            SelectorError: the pod has a selector that the scheduler can't use.
        """
        self.state = state
        self.pod = pod = as_version_reads(pod, state.rules)
        self.priority = priority_of(pod, state)
        self.asked = node_resources_fit.wanted(pod_requests(pod, state.rules))
        self.served: tuple[str, ...] = ()
        """What drivers must serve, on nodes whose device plugins offer none of it (`by_claim`)."""
        self.choice = node_choice(pod.spec)
        self.names = named_nodes(pod.spec)
        self.ports = node_ports.host_ports(pod, state.rules)
        self.disks = volume_restrictions.restricted(pod.spec.volumes)
        claims = pod_claims(pod, state.storage, new_claims)
        self.rejected = claims if isinstance(claims, Rejected) else None
        """Why the pod can't run on any node, if one reason holds for all."""
        if self.names is not None and not self.names:
            self.rejected = Rejected(CONFLICT)
        self.claims = PodClaims() if isinstance(claims, Rejected) else claims
        self.in_use = self._claims_in_use()
        """Names of its ReadWriteOncePod claims that bound pods have: no new node helps."""
        self.limits = VolumeLimits(pod, self.claims, state.storage, state.rules)
        self.pods = pod_choice(pod, state.storage)
        """The pod's required affinity and anti-affinity."""
        self.binding = Binding(self.claims, state.storage, state.screening)
        self.places_volumes = bool(self.claims.all or self.limits.needed)
        """Whether not every node can reach or attach the pod's volumes."""
        self._volumes_decide = bool(self.disks or self.places_volumes)
        self.spread = self._spread()
        self.nearness = self._nearness()
        other_pods = self.spread or self.nearness or state.has_nominations
        self.simple = not (self.ports or self._volumes_decide or other_pods)
        """Whether only resources decide on nodes that pass the static rules."""

    @property
    def by_namespace_label(self) -> bool:
        """Whether the labels of namespaces can change the verdict."""
        meta = self.pod.metadata
        return self.pods.by_namespace_label or self.state.pods.repels_by_namespace_label(
            meta.namespace, meta.labels or {}
        )

    @property
    def related(self) -> bool:
        """Whether further pods on other nodes could make the pod fit."""
        return self.spread is not None or bool(self.pods.near)

    def screened(self) -> Screened:
        """Return the nodes, sorted by the static rules."""
        spec = self.pod.spec
        nodes = spec.node_selector, spec.required_nodes, spec.tolerations
        signature = msgspec.msgpack.encode((spec.node_name, nodes, self._devices))
        return self.state.screening.screened(signature, self.state.kinds, self._static_rules)

    def fixed_failure(self, node: NodeInfo) -> Failure | None:
        """Return why the static rules exclude a node; None if they don't."""
        return self._static_rules().judge(node)

    def admits(self, node: NodeInfo) -> bool:
        """Return whether the pod fits on a node that the static rules pass and that has room."""
        if self.ports or self.state.has_nominations:
            return not self.failures(node)
        return not self._later_failures(node, (), ())

    def failures(self, node: NodeInfo, removed: Leaving | None = None) -> Failures:
        """Return why the pod doesn't fit on a node that passes the static rules; empty if it fits.

        It must fit with and without the pods nominated to the node
        (`RunFilterPluginsWithNominatedPods`). *removed* are pods of the node to leave out.
        """
        gone, free = removed or ((), node.free)
        nominated = self._nominated(node) if self.state.has_nominations else ()
        if nominated:
            failures = self._failures(node, nominated, gone, free_after(free, nominated, -1))
            if failures:
                return failures
        return self._failures(node, (), gone, free)

    def _failures(self, node: NodeInfo, added: Pods, gone: Pods, free: Amounts) -> Failures:
        if self.ports:
            there = pods_after(node.ported, added, gone)
            if node_ports.are_taken(self.ports, (port for pod in there for port in pod.ports)):
                return (PortTaken(),)
        if not node_resources_fit.fits(self.asked, free):
            return node_resources_fit.lacking(self.asked, free, node.allocatable)
        return self._later_failures(node, added, gone)

    def _later_failures(self, node: NodeInfo, added: Pods, gone: Pods) -> Failures:
        if self._volumes_decide:
            failures = self._volume_failures(node, added, gone)
            if failures:
                return failures
        failure = None
        if self.spread is not None:
            failure = self.spread.failure(node, added, gone)
        if failure is None and self.nearness is not None:
            failure = self.nearness.failure(node, added, gone)
        return () if failure is None else (failure,)

    def _volume_failures(self, node: NodeInfo, added: Pods, gone: Pods) -> Failures:
        others = pods_after(node.claimants, added, gone) if self.disks else ()
        if volume_restrictions.in_use(self.disks, others):
            return (DiskInUse(),)
        # If no claim is in use and the pod has no disks, the scheduler skips the plugin even if
        # pods are nominated.
        if (self.in_use or self.disks) and self._one_pod_conflict(added, gone):
            return (ClaimInUse(),)
        if self.limits.needed:
            limit = self.limits.failure(node, added, gone)
            if limit is not None:
                return (limit,)
        return self.binding.failures(node)

    def _one_pod_conflict(self, added: Pods, gone: Pods) -> bool:
        """Return whether a claim is in use: in any namespace, like the plugin."""
        one_pod = self.claims.one_pod
        uses = len(self.in_use)
        for pods, sign in ((added, 1), (gone, -1)):
            uses += sign * sum(claim in one_pod for pod in pods for claim in pod.claims)
        return uses > 0

    def _claims_in_use(self) -> frozenset[str]:
        one_pod = self.claims.one_pod
        if not one_pod:
            return frozenset()
        nodes = self.state.nodes
        others = self.state.pods.in_namespaces((self.pod.metadata.namespace,))
        return frozenset(
            claim
            for other in others
            if other.node in nodes
            for claim in other.claims
            if claim in one_pod
        )

    def _nominated(self, node: NodeInfo) -> Pods:
        pods = self.state.nominated(node.name)
        if not pods or self.pod.spec.node_name:  # no kubelet reads nominations
            return ()
        meta = self.pod.metadata
        mine = pod_key(meta.namespace, meta.name)
        scheduler = self.pod.spec.scheduler_name or DEFAULT_SCHEDULER
        return tuple(
            pod
            for pod, theirs in pods
            if pod.priority >= self.priority.value
            and (theirs or DEFAULT_SCHEDULER) == scheduler
            and pod.key != mine
        )

    @property
    def _devices(self) -> node_resources_fit.Asked:
        return tuple(item for item in self.asked if is_device(item[0]))

    def _static_rules(self) -> StaticRules:
        """Return the static rules: the first four plugins."""
        spec, choice = self.pod.spec, self.choice
        tolerations = tuple(spec.tolerations or ())
        tolerates_cordons = any_tolerates(tolerations, UNSCHEDULABLE)

        def judge(node: NodeInfo) -> Failure | None:
            if not tolerates_cordons and node.node is not None and node.node.spec.unschedulable:
                return Cordoned()
            if spec.node_name and spec.node_name != node.name:
                return OtherNode()
            taint = untolerated(node.taints, tolerations) if node.taints else None
            if taint is not None:
                return taint
            return None if choice.matches(node.labels, node.name) else Unselected()

        reads = choice.reads
        if spec.node_name:
            reads = reads._replace(names=reads.names | {spec.node_name})
        return StaticRules(judge, reads, self._devices)

    def _spread(self) -> Spread | None:
        constraints = compile_constraints(self.pod)
        if not constraints:
            return None
        state, spec = self.state, self.pod.spec
        shape = tuple((c.topology_key, c.honor_affinity, c.honor_taints) for c in constraints)
        found = state.screening.kept(
            msgspec.msgpack.encode(
                (shape, spec.node_selector, spec.required_nodes, spec.tolerations)
            ),
            lambda: domains(constraints, self.pod, self.choice, state.kinds),
        )
        namespace = self.pod.metadata.namespace
        return Spread(constraints, namespace, found, state.pods)

    def _nearness(self) -> Nearness | None:
        state, namespace = self.state, self.pod.metadata.namespace
        alone = not self.pods.near and not self.pods.away
        if self.pod.spec.node_name or (alone and not state.pods.repelling(namespace)):
            return None  # no kubelet reads affinities to pods
        mine = state.storage.get(Namespace, namespace)
        labels = (mine.metadata.labels or {}) if mine else {}
        nearness = Nearness(self.pod, self.pods, labels, state.nodes, state.pods)
        return nearness if nearness.needed else None
