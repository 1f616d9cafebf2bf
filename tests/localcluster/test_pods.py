"""The states of pods on a cluster that only reports them as Running."""

from __future__ import annotations

from localcluster import LocalCluster
from localcluster.client import Object
from tests.fixtures.cluster import AddNodes
from tests.waiting import wait_for


def gpu_pod(name: str, gpus: int, **spec: object) -> Object:
    container = {
        "name": "notebook",
        "image": "example.org/notebook",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def phase(cluster: LocalCluster, namespace: str, name: str) -> str:
    pod = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return str(pod["status"]["phase"])


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
