"""How the hub judges the schedulers that its pods name. Pure.

The user-scheduler of the Zero-to-JupyterHub chart is judged by the chart's values. The chart
(`templates/scheduling/user-scheduler/` in 4.4.0) runs the image of kube-scheduler that the values
name. It copies `plugins` and `pluginConfig` into the scheduler's only profile. As the values come,
they change scores only; an administrator may change more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from gpuspawner.kube.objects import mapping, mappings
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER, minor_version

CHART_PLACE = "scheduling.userScheduler"
"""Where the chart's values have this scheduler."""

# Extension points of a profile (KubeSchedulerConfiguration v1, `Plugins`) that neither exclude
# nodes nor reject a pod. All other points may: `postFilter` preempts, and `reserve`, `permit` and
# `preBind` can still send a pod back.
_WITHOUT_EFFECT = frozenset({"queueSort", "preScore", "score", "bind", "postBind"})
# `multiPoint` stands for all points of a plugin. These in-tree plugins have no others.
_ONLY_SCORING = frozenset({"ImageLocality", "NodeResourcesBalancedAllocation"})
# Arguments (pkg/scheduler/apis/config/types_pluginargs.go of 1.30.14 and 1.36.2) that filters don't
# read. Those that they read: `ignoredResources` and `ignoredResourceGroups` of NodeResourcesFit,
# `addedAffinity` of NodeAffinity, and `defaultConstraints` of PodTopologySpread, which may be
# `DoNotSchedule`. `filterTimeout` of DynamicResources excludes nodes, too.
_SCORING_ARGUMENTS: Mapping[str, frozenset[str]] = {
    # Whether preemption finds a node doesn't depend on how many candidates it compares.
    "DefaultPreemption": frozenset({"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}),
    "InterPodAffinity": frozenset({"hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}),
    "NodeResourcesBalancedAllocation": frozenset({"resources"}),
    "NodeResourcesFit": frozenset({"scoringStrategy"}),
    # The system's default constraints, and an empty list, are never `DoNotSchedule`.
    "PodTopologySpread": frozenset({"defaultingType"}),
    "VolumeBinding": frozenset({"bindTimeoutSeconds", "shape"}),
}
_OF_EVERY_ARGUMENTS = frozenset({"apiVersion", "kind"})
# Keys of `extraPodSpec` that replace the container or its configuration.
_POD_KEYS = ("containers", "initContainers", "volumes")


class ChartScheduler(msgspec.Struct, frozen=True):
    """The chart's user-scheduler.

    Attributes:
        name: The ``schedulerName`` of its profile.
        version: The tag of its image.
        changes: The values that may change which nodes it excludes; none if it filters as
            kube-scheduler's default profile does.
    """

    name: str
    version: str
    changes: tuple[str, ...]


def read_chart(name: str, values: object) -> ChartScheduler:
    """Judge the scheduler of this name by the chart's values of `CHART_PLACE`. Never raises."""
    scheduler = mapping(values)
    image = mapping(scheduler.get("image"))
    version = str(image.get("tag")).partition("@")[0]
    extra = mapping(scheduler.get("extraPodSpec"))
    changes = (
        *_image_changes(image, version),
        *_plugin_changes(scheduler.get("plugins")),
        *_argument_changes(scheduler.get("pluginConfig")),
        *(f"extraPodSpec.{key}" for key in _POD_KEYS if key in extra),
    )
    return ChartScheduler(name, version, tuple(f"{CHART_PLACE}.{change}" for change in changes))


def _image_changes(image: Mapping[object, object], version: str) -> Iterator[str]:
    """Yield what tells an image from Kubernetes' own; a mirror keeps the last part of its name."""
    if str(image.get("name")).rpartition("/")[2] != "kube-scheduler":
        yield "image.name"
    if minor_version(version) is None:
        yield "image.tag"


def _plugin_changes(plugins: object) -> Iterator[str]:
    if plugins and not isinstance(plugins, Mapping):
        yield "plugins"
    for point, plugin_set in mapping(plugins).items():
        if not plugin_set or point in _WITHOUT_EFFECT:
            continue
        if point == "multiPoint" and _names(plugin_set) <= _ONLY_SCORING:
            continue
        yield f"plugins.{point}"


def _names(plugin_set: object) -> set[str]:
    listed = mapping(plugin_set)
    entries = (*mappings(listed.get("enabled")), *mappings(listed.get("disabled")))
    return {str(entry.get("name")) for entry in entries}


def _argument_changes(plugin_config: object) -> Iterator[str]:
    if plugin_config and not isinstance(plugin_config, list):
        yield "pluginConfig"
    for entry in mappings(plugin_config):
        plugin = entry.get("name")
        harmless = _SCORING_ARGUMENTS.get(str(plugin), frozenset()) | _OF_EVERY_ARGUMENTS
        for argument, value in mapping(entry.get("args")).items():
            if value and argument not in harmless:
                yield f"pluginConfig.{plugin}.{argument}"


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
