"""Nodes that are still starting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpuspawner.scaling.starting_nodes import age, is_starting
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from tests.unit.makers.outlooks import node, pod, state

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GPU = Filters(state(), pod())
NONE = Filters(state(), pod(gpus=0, selector={}))
UNSELECTED = Filters(state(), pod(selector={}))


def made(gpus: int = 1, minutes: float = 1, created: str = "", **spec: Any) -> NodeInfo:
    at = created or (NOW - timedelta(minutes=minutes)).isoformat()
    return state(node("n", gpus, created=at, **spec)).nodes["n"]


def taint(key: str) -> list[dict[str, str]]:
    return [{"key": key, "effect": "NoSchedule"}]


def test_a_young_node_that_has_all_it_needs_is_ready() -> None:
    assert not is_starting(made(), GPU, NOW)
    assert not is_starting(made(0), NONE, NOW)


@pytest.mark.parametrize(
    "key",
    ["node.kubernetes.io/not-ready", "startup-taint.cluster-autoscaler.kubernetes.io/x"],
)
def test_a_young_node_with_a_taint_of_the_start_is_starting(key: str) -> None:
    assert is_starting(made(taints=taint(key)), NONE, NOW)
    assert not is_starting(made(taints=taint("nvidia.com/gpu")), NONE, NOW)


@pytest.mark.parametrize("key", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
def test_a_young_node_that_its_autoscaler_deletes_is_not_on_its_way(key: str) -> None:
    assert not is_starting(made(0, taints=taint(key)), GPU, NOW)


def test_a_young_node_without_its_gpus_is_starting() -> None:
    assert is_starting(made(0), GPU, NOW)


@pytest.mark.parametrize(
    "kind",
    [
        "g4dn.xlarge",
        "p3.8xlarge",
        "g6e.2xlarge",
        "trn1.2xlarge",
        "Standard_NC6s_v3",
        "a2-highgpu-1g",
        "g2-standard-4",
        "gr6.4xlarge",
        "gx3.16x80.l4",
        "VM.GPU.A10.1",
        "g2-gpu-rtx4000a1-s",
        "ecs.gn7i-c8g1.2xlarge",
    ],
)
def test_a_young_node_of_a_type_with_gpus_is_starting_until_it_reports_them(kind: str) -> None:
    labels = {"node.kubernetes.io/instance-type": kind}

    assert is_starting(made(0, labels=labels), UNSELECTED, NOW)
    assert not is_starting(made(1, labels=labels), UNSELECTED, NOW)


DISCOVERED = {"nvidia.com/gpu.product": "Tesla-T4"}


@pytest.mark.parametrize(
    ("gpus", "labels", "expected"),
    [
        (1, {"zone": "a"}, True),
        (1, {"zone": "b"}, False),
        (1, {"zone": "a", **DISCOVERED}, False),
        (1, {"zone": "a", "nvidia.com/gpu.product": "A10"}, False),
        (1, {}, False),
        (0, {"zone": "a"}, False),
    ],
    ids=["not yet", "elsewhere", "labelled", "another model", "not by a cloud", "no GPUs"],
)
def test_a_young_node_with_gpus_is_starting_until_feature_discovery_labels_it(
    gpus, labels, expected
) -> None:
    wanted = Filters(state(), pod(selector={"zone": "a", **DISCOVERED}))

    assert is_starting(made(gpus, labels=labels), wanted, NOW) == expected


@pytest.mark.parametrize("kind", ["m5.xlarge", "r6g.large", "Standard_D4s_v5", "e2-standard-4"])
def test_a_young_node_of_another_type_is_ready(kind: str) -> None:
    labels = {"node.kubernetes.io/instance-type": kind}

    assert not is_starting(made(0, labels=labels), UNSELECTED, NOW)


def test_a_young_node_without_the_driver_of_a_volume_is_starting() -> None:
    driver = {"metadata": {"name": "csi"}, "spec": {"preventPodSchedulingIfMissing": True}}
    class_ = {
        "metadata": {"name": "c"},
        "provisioner": "csi",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {"metadata": {"name": "home", "namespace": "jhub"}, "spec": {"storageClassName": "c"}}
    home = [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]
    claims = {"persistentVolumeClaims": [claim], "storageClasses": [class_]}
    wanted = pod(volumes=home)

    assert is_starting(made(), Filters(state(csiDrivers=[driver], **claims), wanted), NOW)
    assert not is_starting(made(), Filters(state(**claims), wanted), NOW)


def test_after_a_quarter_of_an_hour_it_will_not_become_ready() -> None:
    assert is_starting(made(0, minutes=14.9), GPU, NOW)
    assert not is_starting(made(0, minutes=15.1), GPU, NOW)


def test_a_cordoned_node_is_not_starting() -> None:
    assert not is_starting(made(0, unschedulable=True), GPU, NOW)


@pytest.mark.parametrize("created", ["yesterday", "2026-01-01T00:00:00"])
def test_a_node_whose_age_nobody_knows_is_not_starting(created: str) -> None:
    assert age(made(created=created), NOW) is None
    assert not is_starting(made(0, created=created), GPU, NOW)


def test_a_young_node_that_nothing_says_to_have_gpus_is_ready() -> None:
    assert not is_starting(made(0, labels={}), UNSELECTED, NOW)
    assert is_starting(made(0, labels={}, taints=taint("nvidia.com/gpu")), UNSELECTED, NOW)
    assert is_starting(made(0, labels={"nvidia.com/gpu.present": "true"}), UNSELECTED, NOW)
