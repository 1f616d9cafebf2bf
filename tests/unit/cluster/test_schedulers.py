"""Each scheduler is judged by what the administrator says, then by what the chart shows."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.cluster.schedulers import (
    ONLY_SCORING,
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

HARMLESS = ChartScheduler("jhub-user-scheduler", "v1.30.14", ())
CHANGED = ChartScheduler("jhub-user-scheduler", "v1.30.14", ("plugins.filter",))


def test_no_name_is_the_default_scheduler() -> None:
    assert Schedulers().judge(["", "default-scheduler"]) == (DefaultScheduler(),)


def test_a_scheduler_that_only_scores_differently_is_trusted_with_its_version() -> None:
    schedulers = Schedulers(chart=HARMLESS)

    assert schedulers.judge(["jhub-user-scheduler"]) == (
        OfChart("jhub-user-scheduler", "v1.30.14"),
    )
    assert schedulers.trusted >= {"default-scheduler", "jhub-user-scheduler"}
    assert schedulers.version("jhub-user-scheduler") == "v1.30.14"


def test_a_scheduler_that_may_filter_differently_is_not() -> None:
    schedulers = Schedulers(chart=CHANGED)

    assert schedulers.judge(["jhub-user-scheduler"]) == (
        UnknownScheduler("jhub-user-scheduler", ("plugins.filter",)),
    )
    assert "jhub-user-scheduler" not in schedulers.trusted


def test_the_administrator_s_word_counts_before_the_values() -> None:
    schedulers = Schedulers(["jhub-user-scheduler"], CHANGED)

    assert schedulers.judge(["jhub-user-scheduler"]) == (Declared("jhub-user-scheduler"),)
    assert schedulers.trusted >= {"default-scheduler", "jhub-user-scheduler"}
    assert schedulers.version("jhub-user-scheduler") == "v1.30.14"


@pytest.mark.parametrize(
    ("name", "provider"),
    [("gke.io/optimize-utilization-scheduler", "GKE"), ("bin-packing-scheduler", "Gardener")],
)
def test_a_provider_s_profile_that_only_scores_differently_is_known_by_its_name(
    name: str, provider: str
) -> None:
    assert Schedulers().judge([name]) == (OfProvider(name, provider),)
    assert Schedulers().trusted == {DEFAULT_SCHEDULER, *ONLY_SCORING}
    assert Schedulers([name]).judge([name]) == (Declared(name),)


@pytest.mark.parametrize(
    "name",
    [
        "gke.io/first-fit",
        "gke.io/topology-aware-auto",
        "hami-scheduler",
        "kai-scheduler",
        "koord-scheduler",
        "runai-scheduler",
        "stork",
        "yunikorn",
    ],
)
def test_a_scheduler_that_admission_sets_and_that_places_by_rules_of_its_own_stays_unknown(
    name: str,
) -> None:
    assert Schedulers().judge([name]) == (UnknownScheduler(name),)
    assert name not in Schedulers().trusted


def test_nothing_is_assumed_about_another_scheduler() -> None:
    schedulers = Schedulers(chart=HARMLESS)

    assert schedulers.judge(["volcano", "", "volcano"]) == (
        UnknownScheduler("volcano"),
        DefaultScheduler(),
    )
    assert schedulers.version("volcano") is None
    assert "volcano" not in schedulers.trusted


NAME = "jhub-user-scheduler"
IMAGE = {"name": "registry.k8s.io/kube-scheduler", "tag": "v1.30.14"}


def changes(**values: Any) -> tuple[str, ...]:
    read = read_chart(NAME, {"enabled": True, "image": IMAGE, **values})
    return tuple(change.removeprefix("scheduling.userScheduler.") for change in read.changes)


def configured(plugin: str, **arguments: Any) -> tuple[str, ...]:
    return changes(pluginConfig=[{"name": plugin, "args": arguments}])


def test_a_change_is_named_as_the_administrator_wrote_it() -> None:
    read = read_chart(NAME, {"image": IMAGE, "plugins": {"filter": {"disabled": [{"name": "*"}]}}})

    assert read.changes == ("scheduling.userScheduler.plugins.filter",)


def test_the_version_is_the_image_s_tag() -> None:
    assert read_chart(NAME, {"image": IMAGE}).version == "v1.30.14"


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


@pytest.mark.parametrize("point", ["queueSort", "preScore", "score", "bind", "postBind"])
def test_plugins_that_exclude_no_node_may_change(point) -> None:
    assert changes(plugins={point: {"disabled": [{"name": "*"}]}}) == ()


@pytest.mark.parametrize(
    "point",
    [
        "preEnqueue",
        "preFilter",
        "filter",
        "postFilter",
        "reserve",
        "permit",
        "preBind",
        "somethingNew",
    ],
)
def test_plugins_that_can_exclude_a_node_or_reject_a_pod_may_not_change(point) -> None:
    assert changes(plugins={point: {"disabled": [{"name": "A"}]}}) == (f"plugins.{point}",)


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
    ],
)
def test_what_is_not_of_the_expected_shape_is_not_trusted(values, change) -> None:
    assert changes(**values) == change


@pytest.mark.parametrize("values", [None, [], "on"])
def test_values_that_say_nothing_are_not_trusted(values) -> None:
    assert read_chart(NAME, values).changes
