"""A pod that a user wants to start, before it exists."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from msgspec import to_builtins

from gpuspawner.kube.objects import Manifest, Undecodable, convert
from gpuspawner.kube.pods import Pod
from gpuspawner.policy import Grant
from gpuspawner.preflight.pending_pods import Key
from gpuspawner.preflight.verdicts import Subject
from gpuspawner.scaling.declared import DeclaredPool


@dataclass(frozen=True)
class Proposal:
    """What the preflight decides about.

    Attributes:
        pod: The pod that the grant makes, as the API writes it.
        new_claims: PersistentVolumeClaims that KubeSpawner creates before the pod, if they don't
            exist yet.
        pool: The pool that the administrator declares for a pod without an accelerator of ours.
    """

    namespace: str
    name: str
    pod: Manifest = field(repr=False)  # its environment holds tokens
    grant: Grant
    new_claims: tuple[Manifest, ...] = field(default=(), repr=False)
    pool: DeclaredPool | None = None

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
        return replace(self, pod=to_builtins(pod))

    @property
    def decoded(self) -> Pod | None:
        """The pod; None if it can't be read."""
        return self.subject.pod if isinstance(self.subject, Subject) else None

    @cached_property
    def subject(self) -> Subject | Undecodable:
        """The pod to evaluate; an `Undecodable` if it can't be read."""
        metadata = self.pod.get("metadata")
        place = {"namespace": self.namespace, "name": self.name}
        named = {**(metadata if isinstance(metadata, Mapping) else {}), **place}
        pod = convert("Pod", {**self.pod, "metadata": named})
        if isinstance(pod, Pod):
            return Subject(pod, self.new_claims)
        return (
            pod
            if isinstance(pod, Undecodable)
            else Undecodable("Pod", *self.key, "", "it is no pod")
        )
