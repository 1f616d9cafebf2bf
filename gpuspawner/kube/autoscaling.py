"""Karpenter's objects, those for Cluster Autoscaler, and events: what tells of nodes to come.

Karpenter's are those of ``karpenter.sh/v1`` (``pkg/apis/v1`` of v1.14.1), which v1beta1 has too.
OpenShift's are those of its cluster-autoscaler-operator (``pkg/apis/autoscaling``, August 2026).
"""

from datetime import datetime

from .meta import (
    BareMeta,
    Condition,
    KubeStruct,
    LabelSelectorRequirement,
    ObjectMeta,
    Quantities,
    moment,
)
from .nodes import Taint


class TemplateMeta(KubeStruct, frozen=True):
    """The metadata that a NodePool gives to its nodes."""

    labels: dict[str, str] | None = None


class NodeTemplateSpec(KubeStruct, frozen=True):
    """What nodes require and have, their startup taints only until they are ready."""

    requirements: list[LabelSelectorRequirement] | None = None
    taints: list[Taint] | None = None
    startup_taints: list[Taint] | None = None


class NodeTemplate(KubeStruct, frozen=True):
    """The nodes that a NodePool makes."""

    metadata: TemplateMeta = TemplateMeta()
    spec: NodeTemplateSpec = NodeTemplateSpec()


class DisruptionBudget(KubeStruct, frozen=True):
    """How many nodes Karpenter may remove at once; without a schedule, always."""

    nodes: str = ""
    schedule: str | None = None
    reasons: list[str] | None = None


class Disruption(KubeStruct, frozen=True):
    """When Karpenter removes nodes to save money, with the API's default."""

    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after: str = ""
    budgets: list[DisruptionBudget] | None = None


class NodePoolSpec(KubeStruct, frozen=True):
    """A NodePool's nodes and limits; with `replicas`, its size is fixed."""

    template: NodeTemplate = NodeTemplate()
    disruption: Disruption = Disruption()
    limits: Quantities | None = None
    replicas: int | None = None


class NodePoolStatus(KubeStruct, frozen=True):
    """What the pool's nodes have together; ``nodes`` counts them."""

    resources: Quantities | None = None
    conditions: list[Condition] | None = None


class NodePool(KubeStruct, frozen=True):
    """A pool from which Karpenter makes nodes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        """Whether Karpenter uses it, as far as its conditions tell."""
        conditions = self.status.conditions or ()
        return not any(it.type == "Ready" and it.status == "False" for it in conditions)


class NodeClaimStatus(KubeStruct, frozen=True):
    """The node: its name once it has joined, and its resources once it is launched."""

    node_name: str = ""
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None


class NodeClaim(KubeStruct, frozen=True):
    """One node that Karpenter makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeTemplateSpec = NodeTemplateSpec()
    status: NodeClaimStatus = NodeClaimStatus()


class ClusterAutoscalerSpec(KubeStruct, frozen=True):
    """How OpenShift's operator runs Cluster Autoscaler."""

    startup_taints: list[str] | None = None


class ClusterAutoscaler(KubeStruct, frozen=True):
    """Lets OpenShift's operator run Cluster Autoscaler."""

    metadata: BareMeta = BareMeta()
    spec: ClusterAutoscalerSpec = ClusterAutoscalerSpec()


class MachineAutoscaler(KubeStruct, frozen=True):
    """Lets Cluster Autoscaler scale a set of OpenShift's machines."""

    metadata: BareMeta = BareMeta()


class ConfigMap(KubeStruct, frozen=True):
    """A ConfigMap; only Cluster Autoscaler's status is followed."""

    metadata: BareMeta = BareMeta()
    data: dict[str, str] | None = None


class Involved(KubeStruct, frozen=True):
    """The object that an event is about; `field_path` names one of its containers."""

    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventMeta(BareMeta, frozen=True):
    """The metadata of an event."""

    creation_timestamp: str | None = None


class EventSeries(KubeStruct, frozen=True):
    """How often an event has been seen, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class Event(KubeStruct, frozen=True):
    """An event of a pod; each of its times may be missing."""

    metadata: EventMeta = EventMeta()
    involved_object: Involved = Involved()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int | None = None
    series: EventSeries | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def text(self) -> str:
        """Its message, without what client-go adds to the tenth of a kind (``events_cache.go``)."""
        return self.message.removeprefix("(combined from similar events): ")

    @property
    def times(self) -> int:
        """How often it was seen."""
        return max(1, self.count or 0, self.series.count if self.series else 0)

    @property
    def began(self) -> datetime | None:
        """When it was seen first; None if it doesn't say."""
        return _first(self.first_timestamp, self.event_time, self.metadata.creation_timestamp)

    @property
    def last(self) -> datetime | None:
        """When it was seen last; None if it doesn't say."""
        series = self.series.last_observed_time if self.series else None
        return _first(series, self.last_timestamp) or self.began


def _first(*texts: str | None) -> datetime | None:
    return next((at for text in texts if (at := moment(text)) is not None), None)
