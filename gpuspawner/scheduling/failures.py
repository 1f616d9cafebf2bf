"""Why a pod cannot run on a node: frozen facts, each with kube-scheduler's own text (v1.36).

The texts are `.reason`; the other fields are what people need and the texts lack.
"""

from dataclasses import dataclass
from typing import ClassVar

from .requests import PODS


@dataclass(frozen=True, slots=True)
class Failure:
    """Base of all facts."""

    resolvable: ClassVar[bool] = False
    """Whether pods could go (preemption) so that it holds no more; `Unschedulable` in Kubernetes'
    terms, `UnschedulableAndUnresolvable` otherwise."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Cordoned(Failure):
    """The node is cordoned."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) were unschedulable"


@dataclass(frozen=True, slots=True)
class OtherNode(Failure):
    """The pod names another node."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match the requested node name"


@dataclass(frozen=True, slots=True)
class Untolerated(Failure):
    """A taint of the node that the pod does not tolerate: the first of them."""

    key: str
    value: str
    effect: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had untolerated taint(s)"


@dataclass(frozen=True, slots=True)
class Unselected(Failure):
    """The pod's nodeSelector or required node affinity does not select the node."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match Pod's node affinity/selector"


@dataclass(frozen=True, slots=True)
class Excluded(Failure):
    """The pod's node affinity names nodes by `metadata.name`, and this is none of them."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@dataclass(frozen=True, slots=True)
class PortTaken(Failure):
    """A host port that a pod on the node already has."""

    resolvable: ClassVar[bool] = True
    protocol: str
    port: int

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't have free ports for the requested pod ports"


@dataclass(frozen=True, slots=True)
class Insufficient(Failure):
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


@dataclass(frozen=True, slots=True)
class DiskInUse(Failure):
    """An in-tree disk that a pod on the node already has."""

    resolvable: ClassVar[bool] = True
    volume: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had no available disk"


@dataclass(frozen=True, slots=True)
class ClaimInUse(Failure):
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


@dataclass(frozen=True, slots=True)
class TooManyVolumes(Failure):
    """The node takes no more volumes of a CSI driver."""

    resolvable: ClassVar[bool] = True
    driver: str
    limit: int

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) exceed max volume count"


@dataclass(frozen=True, slots=True)
class VolumeElsewhere(Failure):
    """A volume that the node cannot reach, by the volume's node affinity."""

    claim: str
    volume: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match PersistentVolume's node affinity"


@dataclass(frozen=True, slots=True)
class NoVolume(Failure):
    """No volume is free, or can be made, on the node for a claim."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't find available persistent volumes to bind"


@dataclass(frozen=True, slots=True)
class NoStorage(Failure):
    """The storage that the node reaches has too little space for a claim."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) did not have enough free storage"


@dataclass(frozen=True, slots=True)
class VolumeGone(Failure):
    """A claim is bound to a volume that is not there."""

    claim: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True)
class OtherZone(Failure):
    """A volume whose zone or region label is not the node's."""

    volume: str
    label: str
    zones: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) had no available volume zone"


@dataclass(frozen=True, slots=True)
class Uneven(Failure):
    """The pod would be spread too unevenly."""

    resolvable: ClassVar[bool] = True
    topology_key: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class NoTopology(Failure):
    """The node lacks the label that the pod is spread over."""

    topology_key: str

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod topology spread constraints (missing required label)"


@dataclass(frozen=True, slots=True)
class NotNear(Failure):
    """The pods that the pod wants to be near are not there."""

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod affinity rules"


@dataclass(frozen=True, slots=True)
class TooNear(Failure):
    """Pods that the pod wants to be away from are there."""

    resolvable: ClassVar[bool] = True

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't match pod anti-affinity rules"


@dataclass(frozen=True, slots=True)
class Repelled(Failure):
    """Pods that are there want to be away from the pod."""

    resolvable: ClassVar[bool] = True

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return "node(s) didn't satisfy existing pods anti-affinity rules"


@dataclass(frozen=True, slots=True)
class Rejected(Failure):
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
    return all(failure.resolvable for failure in failures)
