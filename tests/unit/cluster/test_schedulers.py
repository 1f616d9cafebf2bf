"""Each scheduler is judged by what the administrator says, then by what the chart shows."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.cluster.schedulers import (
    ChartScheduler,
    Declared,
    DefaultScheduler,
    OfChart,
    OfProvider,
    Schedulers,
    UnknownScheduler,
    read_chart,
)
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER

NAME, VERSION = "jhub-user-scheduler", "v1.30.14"
HARMLESS = ChartScheduler(NAME, VERSION, ())
CHANGED = ChartScheduler(NAME, VERSION, ("plugins.filter",))
OF_GKE, OF_GARDENER = "gke.io/optimize-utilization-scheduler", "bin-packing-scheduler"
WITH_RULES_OF_ITS_OWN = (
    "gke.io/first-fit", "gke.io/topology-aware-auto", "hami-scheduler", "kai-scheduler",
    "koord-scheduler", "runai-scheduler", "stork", "volcano", "yunikorn",
)  # fmt: skip
JUDGED = {
    "no name is the default scheduler": (Schedulers(), "", DefaultScheduler()),
    "the default scheduler": (Schedulers(), DEFAULT_SCHEDULER, DefaultScheduler()),
    "the chart's, which only scores differently": (
        Schedulers(chart=HARMLESS), NAME, OfChart(NAME, VERSION)
    ),
    "the chart's, which may filter differently": (
        Schedulers(chart=CHANGED), NAME, UnknownScheduler(NAME, ("plugins.filter",))
    ),
    "the administrator's word counts before the values": (
        Schedulers([NAME], CHANGED), NAME, Declared(NAME)
    ),
    "GKE's profile": (Schedulers(), OF_GKE, OfProvider(OF_GKE, "GKE")),
    "Gardener's profile": (Schedulers(), OF_GARDENER, OfProvider(OF_GARDENER, "Gardener")),
    "the administrator's word counts before the provider's": (
        Schedulers([OF_GKE]), OF_GKE, Declared(OF_GKE)
    ),
    **{it: (Schedulers(chart=HARMLESS), it, UnknownScheduler(it)) for it in WITH_RULES_OF_ITS_OWN},
}  # fmt: skip


@pytest.mark.parametrize(("schedulers", "name", "judgement"), JUDGED.values(), ids=JUDGED)
def test_a_scheduler_is_trusted_unless_its_filters_may_be_others(
    schedulers, name, judgement
) -> None:
    assert schedulers.judge([name, name]) == (judgement,)
    is_unknown = isinstance(judgement, UnknownScheduler)
    assert ((name or DEFAULT_SCHEDULER) not in schedulers.trusted) is is_unknown


def test_only_the_chart_s_scheduler_has_a_version_of_its_own() -> None:
    schedulers = Schedulers(chart=CHANGED)

    assert (schedulers.version(NAME), schedulers.version("volcano")) == (VERSION, None)


IMAGE = {"name": "registry.k8s.io/kube-scheduler", "tag": VERSION}


def changes(**values: Any) -> tuple[str, ...]:
    read = read_chart(NAME, {"enabled": True, "image": IMAGE, **values})
    return tuple(change.removeprefix("scheduling.userScheduler.") for change in read.changes)


def configured(plugin: str, **arguments: Any) -> tuple[str, ...]:
    return changes(pluginConfig=[{"name": plugin, "args": arguments}])


def test_a_change_is_named_as_the_administrator_wrote_it() -> None:
    values = {"image": IMAGE, "plugins": {"filter": {"disabled": [{"name": "*"}]}}}

    assert read_chart(NAME, values) == ChartScheduler(
        NAME, VERSION, ("scheduling.userScheduler.plugins.filter",)
    )


@pytest.mark.parametrize(
    ("image", "change"),
    [
        (IMAGE, ()),
        ({"name": "mirror.example/k8s/kube-scheduler", "tag": "v1.35.7-eks-1-35-2"}, ()),
        ({**IMAGE, "tag": "v1.35.7@sha256:0123"}, ()),
        ({"name": "ghcr.io/us/our-scheduler", "tag": "v1.30.14"}, ("image.name",)),
        # The images with more plugins have versions of their own.
        (
            {"name": "registry.k8s.io/scheduler-plugins/kube-scheduler", "tag": "v0.31.8"},
            ("image.tag",),
        ),
        ({**IMAGE, "tag": "latest"}, ("image.tag",)),
        ({}, ("image.name", "image.tag")),
    ],
)
def test_only_kubernetes_own_image_of_a_known_version_is_trusted(image, change) -> None:
    assert changes(image=image) == change


SCORING = ("queueSort", "preScore", "score", "bind", "postBind")
FILTERING = (
    "preEnqueue", "preFilter", "filter", "postFilter", "reserve", "permit", "preBind",
    "somethingNew",
)  # fmt: skip


@pytest.mark.parametrize(
    ("point", "change"),
    [*((it, ()) for it in SCORING), *((it, (f"plugins.{it}",)) for it in FILTERING)],
)
def test_only_plugins_that_exclude_no_node_and_reject_no_pod_may_change(point, change) -> None:
    assert changes(plugins={point: {"disabled": [{"name": "*"}]}}) == change


def test_an_empty_point_changes_nothing() -> None:
    assert changes(plugins={"filter": {}, "preFilter": None}, pluginConfig=None) == ()


@pytest.mark.parametrize(
    ("plugin", "change"),
    [("NodeResourcesBalancedAllocation", ()), ("NodeResourcesFit", ("plugins.multiPoint",))],
)
def test_all_points_of_a_plugin_may_change_only_if_it_only_scores(plugin, change) -> None:
    assert changes(plugins={"multiPoint": {"disabled": [{"name": plugin}]}}) == change


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}}),
        ("NodeResourcesFit", {"ignoredResources": []}),
        ("NodeResourcesFit", {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "A"}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}]}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 5}),
        ("PodTopologySpread", {"defaultingType": "List"}),
        ("VolumeBinding", {"bindTimeoutSeconds": 60}),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": 10}),
    ],
)
def test_arguments_that_filters_do_not_read_are_trusted(plugin, arguments) -> None:
    assert configured(plugin, **arguments) == ()


@pytest.mark.parametrize(
    ("plugin", "argument", "value"),
    [
        ("NodeResourcesFit", "ignoredResources", ["nvidia.com/gpu"]),
        ("NodeResourcesFit", "ignoredResourceGroups", ["nvidia.com"]),
        ("NodeAffinity", "addedAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": {}}),
        ("PodTopologySpread", "defaultConstraints", [{"whenUnsatisfiable": "DoNotSchedule"}]),
        ("DynamicResources", "filterTimeout", "1s"),
        ("OurPlugin", "anything", True),
    ],
)
def test_arguments_that_filters_read_are_not(plugin, argument, value) -> None:
    assert configured(plugin, **{argument: value}) == (f"pluginConfig.{plugin}.{argument}",)


@pytest.mark.parametrize("key", ["containers", "initContainers", "volumes"])
def test_another_container_may_not_run_in_its_place(key) -> None:
    assert changes(extraPodSpec={key: [], "dnsPolicy": "Default"}) == (f"extraPodSpec.{key}",)


@pytest.mark.parametrize(
    ("values", "change"),
    [
        ({"plugins": ["score"]}, ("plugins",)),
        ({"pluginConfig": {"NodeResourcesFit": {}}}, ("pluginConfig",)),
        ({"plugins": {"multiPoint": {"enabled": [{"name": {}}]}}}, ("plugins.multiPoint",)),
    ],
)
def test_what_is_not_of_the_expected_shape_is_not_trusted(values, change) -> None:
    assert changes(**values) == change


@pytest.mark.parametrize("values", [None, [], "on"])
def test_values_that_say_nothing_are_not_trusted(values) -> None:
    assert read_chart(NAME, values).changes
