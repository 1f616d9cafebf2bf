"""How the hub judges the schedulers that its pods name. Pure."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from gpuspawner.cluster.user_scheduler import ChartScheduler
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER

ONLY_SCORING: Mapping[str, str] = {
    "gke.io/default-scheduler": "GKE",
    "gke.io/optimize-utilization-scheduler": "GKE",
    "bin-packing-scheduler": "Gardener",
}
"""Profiles of a cluster's own kube-scheduler that filter as the default one, and whose they are.

Admission writes their names into pods that name no other scheduler. GKE does so for the autoscaling
profile ``optimize-utilization`` ("About GKE cluster autoscaling" in its documentation), and its
autoscaler counts both for the default scheduler (``scale_up_status_processor.go`` of
GoogleCloudPlatform/cluster-autoscaler, 1.36). Gardener does so for the scheduling profile
``bin-packing`` (``pkg/component/kubernetes/scheduler/scheduler.go`` of August 2026).

Volcano, YuniKorn, KAI, Run:ai, Koordinator and HAMi place pods by rules of their own, and Stork has
an extender that filters; their admission sets their names, too, and they are no profiles of these.
"""


class DefaultScheduler(msgspec.Struct, frozen=True):
    """Kubernetes' own scheduler."""

    name: str = DEFAULT_SCHEDULER


class Declared(msgspec.Struct, frozen=True):
    """The administrator declares that it filters as the default profile does."""

    name: str


class OfProvider(msgspec.Struct, frozen=True):
    """A provider's profile that filters as the default profile does; see `ONLY_SCORING`."""

    name: str
    provider: str


class OfChart(msgspec.Struct, frozen=True):
    """The chart's values show that it filters as the default profile does.

    Attributes:
        version: Of the chart's kube-scheduler, not of the cluster.
    """

    name: str
    version: str


class UnknownScheduler(msgspec.Struct, frozen=True):
    """Nothing shows how it filters, so every verdict about its pods is unknown.

    Attributes:
        changes: The chart's values that may change its filters; none if it isn't the chart's.
    """

    name: str
    changes: tuple[str, ...] = ()


Judgement = DefaultScheduler | Declared | OfProvider | OfChart | UnknownScheduler


class Schedulers(msgspec.Struct, frozen=True):
    """What the hub knows about schedulers.

    Attributes:
        declared: The administrator says that these filter as the default profile does.
        chart: The chart's scheduler; None if the hub doesn't see the chart's values.
    """

    declared: Collection[str] = ()
    chart: ChartScheduler | None = None

    def judge(self, names: Iterable[str]) -> tuple[Judgement, ...]:
        """Judge each scheduler once, in this order; "" is the default scheduler."""
        return tuple(map(self._judge, dict.fromkeys(name or DEFAULT_SCHEDULER for name in names)))

    @property
    def trusted(self) -> frozenset[str]:
        """The names of the schedulers that filter as the default profile does."""
        ours = {self.chart.name} if self.chart and not self.chart.changes else set()
        return frozenset({DEFAULT_SCHEDULER, *ONLY_SCORING, *self.declared, *ours})

    def version(self, name: str) -> str | None:
        """Return the version of a scheduler, if it isn't the cluster's."""
        return self.chart.version if self.chart and self.chart.name == name else None

    def _judge(self, name: str) -> Judgement:
        if name == DEFAULT_SCHEDULER:
            return DefaultScheduler()
        if name in self.declared:
            return Declared(name)
        if name in ONLY_SCORING:
            return OfProvider(name, ONLY_SCORING[name])
        if self.chart is None or self.chart.name != name:
            return UnknownScheduler(name)
        changes = self.chart.changes
        return UnknownScheduler(name, changes) if changes else OfChart(name, self.chart.version)
