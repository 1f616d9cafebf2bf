"""Pools that the played Cluster Autoscaler grows, on a real control plane."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from localcluster import ClusterAutoscaler, Fleet, LocalCluster, NodeGroup, Scaling, Taint
from localcluster.client import Object
from localcluster.clusterautoscaler.autoscaler import STATUS_PATH
from tests.fixtures.cluster import GrowingCluster
from tests.localcluster.seen import TOLERANT, event, gpu_pod, messages, phase
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

FAST = ClusterAutoscaler(scan_seconds=0.2)
L4 = NodeGroup(
    name="l4",
    count=0,
    labels={"cloud.google.com/gke-accelerator": "nvidia-l4"},
    taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"),),
    allocatable={"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"},
    scaling=Scaling(max_size=1, provision_seconds=1.0, device_seconds=1.0),
)
NODES = "/api/v1/nodes"
WRITER = "cluster-autoscaler"


def l4_pod(name: str) -> Object:
    return gpu_pod(name, nodeSelector=dict(L4.labels), tolerations=TOLERANT)


def group_status(cluster: LocalCluster) -> Object:
    status = yaml.safe_load(cluster.api.get(STATUS_PATH)["data"]["status"])
    [group] = status.get("nodeGroups", [{}])
    return dict(group)


def test_a_pool_at_zero_grows_and_the_pod_runs(
    growing_cluster: GrowingCluster, namespace: str
) -> None:
    cluster = growing_cluster(Fleet((L4,), FAST))
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", l4_pod("p"))

    told = wait_for(lambda: event(cluster, namespace, "p", "TriggeredScaleUp", WRITER))
    assert told == "pod triggered scale-up: [{l4 0->1 (max: 1)}]"
    wait_for(lambda: phase(cluster, namespace, "p") == "Running")

    [node] = cluster.api.items(NODES)
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    wait_for(lambda: group_status(cluster)["scaleUp"]["status"] == "NoActivity")
    health = group_status(cluster)["health"]
    assert (health["cloudProviderTarget"], health["maxSize"]) == (1, 1)


def test_at_its_maximum_a_pool_does_not_grow_and_the_pod_is_told(
    growing_cluster: GrowingCluster, namespace: str
) -> None:
    cluster = growing_cluster(Fleet((L4,), FAST))
    for name in ("first", "second"):
        cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", l4_pod(name))

    def told() -> str:
        reasons = [event(cluster, namespace, name, "NotTriggerScaleUp", WRITER) for name in pods]
        return "".join(reasons)

    pods = ("first", "second")
    assert wait_for(told) == "pod didn't trigger scale-up: 1 max node group size reached"
    wait_for(lambda: "Running" in {phase(cluster, namespace, name) for name in pods})
    assert len(cluster.api.items(NODES)) == 1


def test_without_stock_a_pool_backs_off_and_says_why(
    growing_cluster: GrowingCluster, namespace: str
) -> None:
    scaling = Scaling(
        max_size=3,
        stock=0,
        failure_seconds=0.5,
        error_code="QUOTA_EXCEEDED",
        error_message="Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
    )
    cluster = growing_cluster(Fleet((replace(L4, scaling=scaling),), FAST))
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", l4_pod("p"))

    told = wait_for(lambda: event(cluster, namespace, "p", "NotTriggerScaleUp", WRITER))

    assert told == "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    assert event(cluster, namespace, "p", "TriggeredScaleUp", WRITER) != ""
    wait_for(lambda: group_status(cluster)["scaleUp"]["status"] == "Backoff")
    assert group_status(cluster)["scaleUp"]["backoffInfo"] == {
        "errorCode": "QUOTA_EXCEEDED",
        "errorMessage": "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
    }
    assert group_status(cluster)["health"]["cloudProviderTarget"] == 0
    # Other tests' groups have failed in the same namespace.
    failed = messages(cluster, "kube-system", "cluster-autoscaler-status", "ScaleUpFailed", WRITER)
    reason = "Failed adding 1 nodes to group l4 due to OutOfResource.QUOTA_EXCEEDED"
    assert any(message.startswith(reason) for message in failed)


def test_an_idle_node_is_removed(growing_cluster: GrowingCluster, namespace: str) -> None:
    cluster = growing_cluster(Fleet((L4,), replace(FAST, scale_down_seconds=0.5)))
    pod = f"/api/v1/namespaces/{namespace}/pods/p"
    cluster.api.create(pod.removesuffix("/p"), l4_pod("p"))
    wait_for(lambda: phase(cluster, namespace, "p") == "Running")

    wait_for(lambda: group_status(cluster)["health"]["cloudProviderTarget"] == 1)

    cluster.api.delete(pod, grace=0)
    wait_for(lambda: cluster.api.items(NODES) == [])
    wait_for(lambda: group_status(cluster)["health"]["cloudProviderTarget"] == 0)
