"""The states of pods on a cluster that only reports them as Running."""

from __future__ import annotations

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.localcluster.seen import gpu_pod, phase
from tests.waiting import wait_for


def unschedulable_message(cluster: LocalCluster, namespace: str, name: str) -> str:
    pod = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition["message"])
    return ""


def is_gone(cluster: LocalCluster, namespace: str, name: str) -> bool:
    pods = cluster.api.items(f"/api/v1/namespaces/{namespace}/pods")
    return all(pod["metadata"]["name"] != name for pod in pods)


def test_one_gpu_runs_one_pod_and_the_next_starts_when_it_is_deleted(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, gpu_pod("first", 1))
    wait_for(lambda: phase(cluster, namespace, "first") == "Running")

    cluster.api.create(pods, gpu_pod("second", 1))
    message = wait_for(lambda: unschedulable_message(cluster, namespace, "second"))
    assert "1 Insufficient nvidia.com/gpu" in message

    cluster.api.delete(f"{pods}/first")
    wait_for(lambda: is_gone(cluster, namespace, "first"))
    wait_for(lambda: phase(cluster, namespace, "second") == "Running")
