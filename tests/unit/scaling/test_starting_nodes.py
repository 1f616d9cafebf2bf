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


TYPE = "node.kubernetes.io/instance-type"
TYPES_WITH_GPUS = (
    "g4dn.xlarge", "p3.8xlarge", "g6e.2xlarge", "trn1.2xlarge", "Standard_NC6s_v3",
    "a2-highgpu-1g", "g2-standard-4", "gr6.4xlarge", "gx3.16x80.l4", "VM.GPU.A10.1",
    "g2-gpu-rtx4000a1-s", "ecs.gn7i-c8g1.2xlarge",
)  # fmt: skip
OTHER_TYPES = ("m5.xlarge", "r6g.large", "Standard_D4s_v5", "e2-standard-4")
MODEL = "nvidia.com/gpu.product"
IN_ZONE_WITH_MODEL = Filters(state(), pod(selector={"zone": "a", MODEL: "Tesla-T4"}))


def labelled(gpus: int = 0, **labels: str) -> NodeInfo:
    return made(gpus, labels=labels)


STARTS = {
    "has a taint of the start": (
        made(taints=taint("node.kubernetes.io/not-ready")), NONE
    ),
    "has a taint of the start that a class of taints names": (
        made(taints=taint("startup-taint.cluster-autoscaler.kubernetes.io/x")), NONE
    ),
    "is selected and lacks its GPUs": (made(0), GPU),
    "is almost a quarter of an hour old": (made(0, minutes=14.9), GPU),
    "has a taint of GPUs but none": (
        made(0, labels={}, taints=taint("nvidia.com/gpu")), UNSELECTED
    ),
    "has a label of GPUs but none": (labelled(**{"nvidia.com/gpu.present": "true"}), UNSELECTED),
    "has GPUs that nothing has labelled yet": (labelled(1, zone="a"), IN_ZONE_WITH_MODEL),
    **{f"is a {it} without GPUs": (labelled(**{TYPE: it}), UNSELECTED) for it in TYPES_WITH_GPUS},
}  # fmt: skip
DOES_NOT = {
    "has all it needs": (made(), GPU),
    "has all of what isn't asked for": (made(0), NONE),
    "has a taint of its own": (made(taints=taint("nvidia.com/gpu")), NONE),
    "is deleted by Cluster Autoscaler": (
        made(0, taints=taint("ToBeDeletedByClusterAutoscaler")), GPU
    ),
    "is deleted by Karpenter": (made(0, taints=taint("karpenter.sh/disrupted")), GPU),
    "is more than a quarter of an hour old": (made(0, minutes=15.1), GPU),
    "is cordoned": (made(0, unschedulable=True), GPU),
    "says to have no GPUs": (made(0, labels={}), UNSELECTED),
    "is elsewhere": (labelled(1, zone="b"), IN_ZONE_WITH_MODEL),
    "is labelled": (labelled(1, zone="a", **{MODEL: "Tesla-T4"}), IN_ZONE_WITH_MODEL),
    "is of another model": (labelled(1, zone="a", **{MODEL: "A10"}), IN_ZONE_WITH_MODEL),
    "has no label of a cloud": (labelled(1), IN_ZONE_WITH_MODEL),
    "has no GPUs that could be labelled": (labelled(zone="a"), IN_ZONE_WITH_MODEL),
    **{f"is a {it} with its GPUs": (labelled(1, **{TYPE: it}), UNSELECTED)
       for it in TYPES_WITH_GPUS},
    **{f"is a {it}": (labelled(**{TYPE: it}), UNSELECTED) for it in OTHER_TYPES},
}  # fmt: skip


@pytest.mark.parametrize(("node", "asked"), STARTS.values(), ids=STARTS)
def test_a_young_node_is_starting_if_it(node, asked) -> None:
    assert is_starting(node, asked, NOW)


@pytest.mark.parametrize(("node", "asked"), DOES_NOT.values(), ids=DOES_NOT)
def test_a_node_is_not_starting_if_it(node, asked) -> None:
    assert not is_starting(node, asked, NOW)


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


@pytest.mark.parametrize("created", ["yesterday", "2026-01-01T00:00:00"])
def test_a_node_whose_age_nobody_knows_is_not_starting(created: str) -> None:
    assert age(made(created=created), NOW) is None
    assert not is_starting(made(0, created=created), GPU, NOW)
