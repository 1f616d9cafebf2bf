"""Why a pod cannot run on a node: frozen facts, each with kube-scheduler's own text (v1.36).

The texts are `.reason`; the other fields are what people need and the texts lack.
"""

from typing import ClassVar

import msgspec

from gpuspawner.kube.nodes import Taint

from .requests import PODS


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Base of all facts."""

    resolvable: ClassVar[bool] = False
    """Whether pods could go (preemption) so that it holds no more; `Unschedulable` in Kubernetes'
    terms, `UnschedulableAndUnresolvable` otherwise."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        raise NotImplementedError


class Cordoned(Failure, frozen=True):
    """The node is cordoned."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) were unschedulable"


class OtherNode(Failure, frozen=True):
    """The pod names another node."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match the requested node name"


class Untolerated(Failure, frozen=True):
    """A taint of the node that the pod does not tolerate: the first of them."""

    key: str
    value: str
    effect: str

    @property
    def taint(self) -> Taint:
        """The taint."""
        return Taint(self.key, self.value, self.effect)

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had untolerated taint(s)"


class Unselected(Failure, frozen=True):
    """The pod's nodeSelector or required node affinity does not select the node."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match Pod's node affinity/selector"


class Excluded(Failure, frozen=True):
    """The pod's node affinity names nodes by `metadata.name`, and this is none of them."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't satisfy plugin(s) [NodeAffinity]"


class PortTaken(Failure, frozen=True):
    """A host port that a pod on the node already has."""

    resolvable: ClassVar[bool] = True
    protocol: str
    port: int

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't have free ports for the requested pod ports"


class Insufficient(Failure, frozen=True):
    """Too little of a resource; millicores for `cpu`, whole units (bytes, devices, pods) else."""

    resource: str
    asked: int
    free: int
    """Negative where the node is over-committed."""
    allocatable: int

    @property
    def resolvable(self) -> bool:  # type: ignore[override]
        """Whether the node has it at all."""
        return self.asked <= self.allocatable or self.resource == PODS

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "Too many pods" if self.resource == PODS else f"Insufficient {self.resource}"


class DiskInUse(Failure, frozen=True):
    """An in-tree disk that a pod on the node already has."""

    resolvable: ClassVar[bool] = True
    volume: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had no available disk"


class ClaimInUse(Failure, frozen=True):
    """A ReadWriteOncePod claim that another pod uses."""

    resolvable: ClassVar[bool] = True
    claims: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
            " already in-use by another pod"
        )


class TooManyVolumes(Failure, frozen=True):
    """The node takes no more volumes of a CSI driver."""

    resolvable: ClassVar[bool] = True
    driver: str
    limit: int

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) exceed max volume count"


class VolumeElsewhere(Failure, frozen=True):
    """A volume that the node cannot reach, by the volume's node affinity."""

    claim: str
    volume: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match PersistentVolume's node affinity"


class NoVolume(Failure, frozen=True):
    """No volume is free, or can be made, on the node for a claim."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't find available persistent volumes to bind"


class NoStorage(Failure, frozen=True):
    """The storage that the node reaches has too little space for a claim."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) did not have enough free storage"


class VolumeGone(Failure, frozen=True):
    """A claim is bound to a volume that is not there."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class OtherZone(Failure, frozen=True):
    """A volume whose zone or region label is not the node's."""

    volume: str
    label: str
    zones: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had no available volume zone"


class Uneven(Failure, frozen=True):
    """The pod would be spread too unevenly."""

    resolvable: ClassVar[bool] = True
    topology_key: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod topology spread constraints"


class NoTopology(Failure, frozen=True):
    """The node lacks the label that the pod is spread over."""

    topology_key: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod topology spread constraints (missing required label)"


class NotNear(Failure, frozen=True):
    """The pods that the pod wants to be near are not there."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod affinity rules"


class TooNear(Failure, frozen=True):
    """Pods that the pod wants to be away from are there."""

    resolvable: ClassVar[bool] = True

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod anti-affinity rules"


class Repelled(Failure, frozen=True):
    """Pods that are there want to be away from the pod."""

    resolvable: ClassVar[bool] = True

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't satisfy existing pods anti-affinity rules"


class Rejected(Failure, frozen=True):
    """The pod cannot run on any node, whatever the nodes have; the text says why."""

    text: str
    claim: str = ""
    """The claim that is to blame, if one is."""
    passing: bool = False
    """Whether it will pass by itself: a claim is still to be bound, say."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return self.text


Failures = tuple[Failure, ...]
"""All facts of the first rule that failed on a node."""


def resolvable(failures: Failures) -> bool:
    """Tell whether removing pods could help: no fact may be beyond that."""
    for failure in failures:  # noqa: SIM110 (all() costs three times the time)
        if not failure.resolvable:
            return False
    return True
