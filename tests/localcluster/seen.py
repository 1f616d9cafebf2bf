"""Pods with a GPU, and what the cluster says of a pod."""

from __future__ import annotations

from localcluster import LocalCluster
from localcluster.client import Object

TOLERANT = [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def gpu_pod(name: str, gpus: int = 1, **spec: object) -> Object:
    container = {
        "name": "notebook",
        "image": "example.org/notebook",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def phase(cluster: LocalCluster, namespace: str, name: str) -> str:
    pod = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return str(pod["status"]["phase"])


def event(cluster: LocalCluster, namespace: str, name: str, reason: str, writer: str) -> str:
    """Return the message of an event of the writer with this reason, or ""."""
    return next(iter(messages(cluster, namespace, name, reason, writer)), "")


def messages(
    cluster: LocalCluster, namespace: str, name: str, reason: str, writer: str
) -> list[str]:
    """Return the messages of the writer's events with this reason, in no order."""
    about = f"involvedObject.name={name},reason={reason}"
    events = cluster.api.items(f"/api/v1/namespaces/{namespace}/events?fieldSelector={about}")
    return [str(it["message"]) for it in events if it["reportingComponent"] == writer]
