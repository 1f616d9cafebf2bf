"""Pools that the real Karpenter grows, on a real control plane whose agent keeps its nodes."""

from __future__ import annotations

from datetime import datetime

import pytest

from localcluster import (
    Fleet,
    InstanceType,
    Karpenter,
    NodePool,
    Requirement,
    Taint,
)
from localcluster.client import Object
from tests.fixtures.cluster import GrowingCluster
from tests.localcluster.seen import TOLERANT, event, gpu_pod, phase
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

MODEL = "cloud.google.com/gke-accelerator"
L4 = InstanceType("g2", {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}, {MODEL: "nvidia-l4"})
A100 = InstanceType(
    "a2",
    {"cpu": "12", "memory": "85Gi", "nvidia.com/gpu": "1"},
    {MODEL: "nvidia-tesla-a100"},
    is_sold_out=True,
)
POOL = NodePool(
    name="gpu",
    requirements=(Requirement(MODEL, "In", ("nvidia-l4", "nvidia-tesla-a100")),),
    taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"),),
    limits={"nvidia.com/gpu": "1"},
)
FLEET = Fleet(autoscaler=Karpenter((L4, A100), (POOL,), registration_seconds=1, device_seconds=1))


def pod(name: str, model: str) -> Object:
    return gpu_pod(name, nodeSelector={MODEL: model}, tolerations=TOLERANT)


def since(thing: Object, condition: str) -> datetime:
    [found] = (it for it in thing["status"]["conditions"] if it["type"] == condition)
    assert found["status"] == "True"
    return datetime.fromisoformat(found["lastTransitionTime"])


def test_a_pool_grows_from_zero_to_its_limit_and_no_further(
    growing_cluster: GrowingCluster, namespace: str
) -> None:
    cluster = growing_cluster(FLEET)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, pod("first", "nvidia-l4"))

    told = wait_for(lambda: event(cluster, namespace, "first", "Nominated", "karpenter"))
    assert "should schedule on: nodeclaim/gpu-" in told
    wait_for(lambda: phase(cluster, namespace, "first") == "Running")
    [node] = cluster.api.items("/api/v1/nodes")
    assert node["metadata"]["labels"]["karpenter.sh/nodepool"] == "gpu"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    [claim] = cluster.api.items("/apis/karpenter.sh/v1/nodeclaims")
    assert since(claim, "Registered") < since(node, "Ready")

    cluster.api.create(pods, pod("second", "nvidia-l4"))
    told = wait_for(lambda: event(cluster, namespace, "second", "FailedScheduling", "karpenter"))
    assert "limits" in told
    assert len(cluster.api.items("/api/v1/nodes")) == 1


def test_a_cloud_that_has_sold_out_gives_no_node(
    growing_cluster: GrowingCluster, namespace: str
) -> None:
    cluster = growing_cluster(FLEET)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, pod("p", "nvidia-tesla-a100"))

    def refusals() -> list[str]:
        about = "involvedObject.kind=NodeClaim,reason=InsufficientCapacityError"
        events = cluster.api.items(f"/api/v1/events?fieldSelector={about}")
        return [event["message"] for event in events]

    assert "no a2 is left" in wait_for(refusals)[0]
    # Karpenter then takes that instance type for unavailable, as on a real cloud.
    assert wait_for(lambda: event(cluster, namespace, "p", "FailedScheduling", "karpenter"))
    assert len(refusals()) == 1
    assert cluster.api.items("/api/v1/nodes") == []
