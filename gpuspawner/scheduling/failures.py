"""Why a pod can't run on a node: frozen types, each with kube-scheduler's own text (v1.36).

`.reason` is the scheduler's text. The other fields hold details that the text omits.
"""

from typing import ClassVar

import msgspec

from .requests import PODS


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Base class of all failures."""

    resolvable: ClassVar[bool] = False
    """Whether removing pods (preemption) could resolve it. The scheduler calls these failures
    `Unschedulable`, and all others `UnschedulableAndUnresolvable`."""

    reason: ClassVar[str]
    """The scheduler's text."""


class Cordoned(Failure, frozen=True):
    """The node is cordoned."""

    reason = "node(s) were unschedulable"


class OtherNode(Failure, frozen=True):
    """The pod names another node."""

    reason = "node(s) didn't match the requested node name"


class Untolerated(Failure, frozen=True):
    """The first taint of the node that the pod doesn't tolerate."""

    reason = "node(s) had untolerated taint(s)"
    key: str
    value: str
    effect: str


class Unselected(Failure, frozen=True):
    """The pod's nodeSelector or required node affinity doesn't select the node."""

    reason = "node(s) didn't match Pod's node affinity/selector"


class Excluded(Failure, frozen=True):
    """The pod's node affinity names nodes by `metadata.name`, but not this node."""

    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


class PortTaken(Failure, frozen=True):
    """A pod on the node already uses a host port that the pod wants."""

    reason = "node(s) didn't have free ports for the requested pod ports"
    resolvable = True


class Insufficient(Failure, frozen=True):
    """Too little of a resource, in millicores for `cpu`, else in bytes, devices or pods."""

    resource: str
    asked: int
    free: int
    """Negative if the node is over-committed."""
    allocatable: int

    @property
    def resolvable(self) -> bool:  # type: ignore[override]
        """Whether the allocatable amount is enough; always true for `pods`."""
        return self.asked <= self.allocatable or self.resource == PODS

    @property
    def reason(self) -> str:  # type: ignore[override]
        """The scheduler's text."""
        return "Too many pods" if self.resource == PODS else f"Insufficient {self.resource}"


class DiskInUse(Failure, frozen=True):
    """A pod on the node already uses an in-tree disk that the pod wants."""

    reason = "node(s) had no available disk"
    resolvable = True


class ClaimInUse(Failure, frozen=True):
    """Another pod uses a ReadWriteOncePod claim of the pod."""

    reason = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    )
    resolvable = True


class TooManyVolumes(Failure, frozen=True):
    """The pod's volumes exceed the node's limit for a CSI driver."""

    reason = "node(s) exceed max volume count"
    resolvable = True
    driver: str
    limit: int


class DriverMissing(Failure, frozen=True):
    """The node lacks a CSI driver of the pod's volumes, and the driver wants no such pods there."""

    resolvable = True
    driver: str

    @property
    def reason(self) -> str:  # type: ignore[override]
        """The scheduler's text (v1.37.2)."""
        return f"{self.driver} CSI driver is not installed on the node"


class VolumeElsewhere(Failure, frozen=True):
    """The node affinity of a volume excludes the node."""

    reason = "node(s) didn't match PersistentVolume's node affinity"
    claim: str
    volume: str


class NoVolume(Failure, frozen=True):
    """On this node, no volume is free for a claim, and none can be provisioned."""

    reason = "node(s) didn't find available persistent volumes to bind"
    claim: str


class NoStorage(Failure, frozen=True):
    """The storage that the node can reach has too little space for a claim."""

    reason = "node(s) did not have enough free storage"
    claim: str


class VolumeGone(Failure, frozen=True):
    """A claim is bound to a volume that doesn't exist."""

    reason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class OtherZone(Failure, frozen=True):
    """The zone or region label of a volume differs from the node's."""

    reason = "node(s) had no available volume zone"


class Uneven(Failure, frozen=True):
    """The node would exceed the `maxSkew` of a topology spread constraint."""

    reason = "node(s) didn't match pod topology spread constraints"
    resolvable = True


class NoTopology(Failure, frozen=True):
    """The node lacks the label that a topology spread constraint names."""

    reason = "node(s) didn't match pod topology spread constraints (missing required label)"


class NotNear(Failure, frozen=True):
    """The pods that the pod's affinity requires aren't in the node's topology domain."""

    reason = "node(s) didn't match pod affinity rules"


class TooNear(Failure, frozen=True):
    """The pod's anti-affinity matches a pod in the node's topology domain."""

    reason = "node(s) didn't match pod anti-affinity rules"
    resolvable = True


class Repelled(Failure, frozen=True):
    """The anti-affinity of a pod in the node's topology domain matches the pod."""

    reason = "node(s) didn't satisfy existing pods anti-affinity rules"
    resolvable = True


class Rejected(Failure, frozen=True):
    """The pod can't run on any node; `text` says why."""

    text: str
    claim: str = ""
    """The claim that causes it, if any."""
    passing: bool = False
    """Whether it passes without a change, for example once a claim is bound."""

    @property
    def reason(self) -> str:  # type: ignore[override]
        """The scheduler's text."""
        return self.text


Failures = tuple[Failure, ...]
"""All failures of the first rule that failed on a node."""


def resolvable(failures: Failures) -> bool:
    """Return whether removing pods could resolve all failures."""
    for failure in failures:  # noqa: SIM110 (all() costs three times the time)
        if not failure.resolvable:
            return False
    return True
