"""A pod that a user wants to start, before it exists."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from msgspec import structs

from gpuspawner.kube.kueue import is_gated, queue_of, without_gates
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import Manifest, Undecodable, convert, manifest_of
from gpuspawner.kube.pods import Pod, Toleration
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.node_affinity import off
from gpuspawner.preflight.learned_hooks import Later, MadeFor, kind_of
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scheduling.verdicts import Subject


@dataclass(frozen=True)
class Proposal:
    """What the preflight decides about.

    Attributes:
        pod: The pod that the grant makes, as the API writes it.
        new_claims: PersistentVolumeClaims that KubeSpawner creates before the pod, if they don't
            exist yet.
        pool: The pool that the administrator declares for a pod without an accelerator of ours.
        is_admitted: Whether the API server's admission has had its say about the pod.
        profile: The slug of its profile; "" without one.
        is_open: Whether the hub's own code may still change on which nodes the pod can run, and
            nobody knows how.
        is_unfinished: Whether the hub's own code may still change anything of it.
        may_rise: Whether that code sets priorities.
        owner: The id of the server's owner, whose other servers aren't people ahead in line; "" if
            it is nobody's.
        made: The pod as it was before `expecting`, from which one learns.
        chosen: What is chosen, at which the hub's own code may look.
        older_stays: Whether an older pod of its name in the view is there until this one is sent:
            KubeSpawner, which deletes it then, hasn't seen it go.
    """

    namespace: str
    name: str
    pod: Manifest = field(repr=False)  # its environment holds tokens
    grant: Grant
    new_claims: tuple[Manifest, ...] = field(default=(), repr=False)
    pool: DeclaredPool | None = None
    is_admitted: bool = False
    profile: str = ""
    is_open: bool = False
    is_unfinished: bool = False
    may_rise: bool = False
    owner: Hashable = ""
    made: Manifest = field(default_factory=lambda: {"spec": None}, repr=False, compare=False)
    chosen: object = field(default=None, repr=False, compare=False)
    older_stays: bool = False

    @property
    def kind(self) -> MadeFor:
        """What the pod is made for."""
        return kind_of(self.grant, self.profile)

    @property
    def declared_pool(self) -> DeclaredPool | None:
        """The pool of nodes that the administrator declares for the pod."""
        return self.pool or DeclaredPool.of(self.grant.accelerator)

    @property
    def key(self) -> Key:
        """The key of the pod's reservation."""
        return self.namespace, self.name

    def created(self, pod: Pod) -> "Proposal":
        """Return the proposal of the pod that exists now, which admission may have changed."""
        return self.admitted(manifest_of(pod))

    def admitted(self, pod: Manifest) -> "Proposal":
        """Return the proposal of the pod that admission would make."""
        return replace(self, pod=pod, is_admitted=True)

    @property
    def queue(self) -> str:
        """The LocalQueue of Kueue in which the pod waits, or may have to; "" for none."""
        pod = self._read
        if not isinstance(pod, Pod):
            return ""
        is_queued = is_gated(pod.spec.scheduling_gates) or not self.is_admitted
        return queue_of(pod) if is_queued else ""

    def expecting(self, later: Later, chosen: object) -> "Proposal":
        """Return the proposal of the pod that will probably be sent for what is chosen."""
        return replace(
            self,
            pod=later.expected(self.kind, self.pod),
            is_open=later.is_open(self.kind, self.pod, chosen),
            is_unfinished=later.has_any_code,
            may_rise=later.sets_priority,
            made=self.pod,
            chosen=chosen,
        )

    def kept_off(self, hostnames: Collection[str]) -> "Proposal":
        """Return the proposal of a pod that no scheduler puts on these nodes."""
        if not hostnames:
            return self
        made = off(self.made, hostnames) if self.made["spec"] else self.made
        return replace(self, pod=off(self.pod, hostnames), made=made)

    @property
    def decoded(self) -> Pod | None:
        """The pod; None if it can't be read."""
        return self.subject.pod if isinstance(self.subject, Subject) else None

    @cached_property
    def subject(self) -> Subject | Undecodable:
        """The pod to evaluate, as kube-scheduler gets it; an `Undecodable` if it can't be read."""
        pod = self._read
        if not isinstance(pod, Pod):
            return pod
        return Subject(_as_kubelet_reads(without_gates(pod)), self.new_claims)

    @cached_property
    def _read(self) -> Pod | Undecodable:
        metadata = self.pod.get("metadata")
        place = {"namespace": self.namespace, "name": self.name}
        named = {**(metadata if isinstance(metadata, Mapping) else {}), **place}
        pod = convert("Pod", {**self.pod, "metadata": named})
        if isinstance(pod, Pod | Undecodable):
            return pod
        return Undecodable("Pod", *self.key, "", "it is no pod")


def _as_kubelet_reads(pod: Pod) -> Pod:
    """Return a pod that names its node without what only a scheduler reads: none gets it.

    The node's kubelet reads resources, ports, the node affinity and taints that end pods
    (`generalFilter` in pkg/kubelet/lifecycle/predicate.go, `AdmissionCheck` in pkg/scheduler;
    v1.36.2). It connects volumes, and ends no other pods for a server's.
    """
    spec = pod.spec
    if not spec.node_name:
        return pod
    affinity = spec.affinity and structs.replace(
        spec.affinity, pod_affinity=None, pod_anti_affinity=None
    )
    return pod.with_spec(
        tolerations=[*(spec.tolerations or ()), Toleration(operator="Exists", effect="NoSchedule")],
        affinity=affinity,
        topology_spread_constraints=None,
        scheduler_name="",
        preemption_policy="Never",
    )
