"""The user-scheduler of the Zero-to-JupyterHub chart, judged by the chart's values. Pure.

The chart (`templates/scheduling/user-scheduler/` in 4.4.0) runs the image of kube-scheduler that
the values name. It copies `plugins` and `pluginConfig` into the scheduler's only profile. As the
values come, they change scores only; an administrator may change more.
"""

from collections.abc import Iterator, Mapping

import msgspec

from gpuspawner.kube.objects import mapping
from gpuspawner.scheduling.rules import minor_version

PLACE = "scheduling.userScheduler"
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


def read(name: str, values: object) -> ChartScheduler:
    """Judge the scheduler of this name by the chart's values of `PLACE`. Never raises."""
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
    return ChartScheduler(name, version, tuple(f"{PLACE}.{change}" for change in changes))


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


def _names(plugin_set: object) -> set[object]:
    listed = mapping(plugin_set)
    entries = [entry for key in ("enabled", "disabled") for entry in _list(listed.get(key))]
    return {mapping(entry).get("name") for entry in entries}


def _argument_changes(plugin_config: object) -> Iterator[str]:
    if plugin_config and not isinstance(plugin_config, list):
        yield "pluginConfig"
    for entry in _list(plugin_config):
        plugin = mapping(entry).get("name")
        harmless = _SCORING_ARGUMENTS.get(str(plugin), frozenset()) | _OF_EVERY_ARGUMENTS
        for argument, value in mapping(mapping(entry).get("args")).items():
            if value and argument not in harmless:
                yield f"pluginConfig.{plugin}.{argument}"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
