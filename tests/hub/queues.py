"""Hubs whose servers wait in the queues of the real Kueue, and Kueue's objects for them."""

from __future__ import annotations

from collections.abc import Mapping

from localcluster import ApiError, LocalCluster
from localcluster.client import Object
from localcluster.kueue.objects import (
    API,
    GROUP,
    MANAGED,
    QUEUE_LABEL,
    cluster_queue,
    local_queue,
    priority_class,
    resource_flavor,
)
from tests.hub.running import RunningHub

GPU = "nvidia.com/gpu"


class Queues:
    """Kueue's objects for one hub, whose nodes have the flavor t4."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self.api = cluster.api
        self.namespace = namespace
        self.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": MANAGED}})
        self.api.create(f"{API}/resourceflavors", resource_flavor("t4", nodeLabels={"gpu": "t4"}))

    def add(
        self, name: str, gpus: int, others: Mapping[str, int] | None = None, **spec: object
    ) -> None:
        """Add a ClusterQueue with so many GPUs, and with those of other nodes by their label."""
        for it in others or ():
            self.api.create(f"{API}/resourceflavors", resource_flavor(it, nodeLabels={"gpu": it}))
        quotas = {"t4": gpus, **(others or {})}
        flavors = {it: {GPU: {"nominalQuota": str(quotas[it])}} for it in quotas}
        self.api.create(f"{API}/clusterqueues", cluster_queue(name, flavors, **spec))

    def change(self, name: str, **spec: object) -> None:
        """Change a ClusterQueue."""
        self.api.patch(f"{API}/clusterqueues/{name}", {"spec": spec})

    def lead(self, pool: str, name: str = "default") -> None:
        """Add a LocalQueue of the hub's namespace."""
        path = f"{API}/namespaces/{self.namespace}/localqueues"
        self.api.create(path, local_queue(name, self.namespace, pool))

    def run_job(self, name: str, gpus: int, queue: str, priority: int = 0) -> None:
        """Let a pod of somebody else into a queue."""
        if priority:
            self.api.create(f"{API}/workloadpriorityclasses", priority_class(name, priority))
        labels = {QUEUE_LABEL: queue, **({f"{GROUP}/priority-class": name} if priority else {})}
        container: Object = {
            "name": "job",
            "image": "example.org/job",
            "command": ["sleep", "600"],
            "resources": {"limits": {GPU: str(gpus)}},
        }
        pod = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
        self.api.create(f"/api/v1/namespaces/{self.namespace}/pods", pod)

    def deactivate(self, pod: str) -> None:
        """Let Kueue consider a pod no more, as for one that an admission check has rejected."""
        workloads = f"{API}/namespaces/{self.namespace}/workloads"
        for it in self.api.items(workloads):
            if it["metadata"]["ownerReferences"][0]["name"] == pod:
                self.api.patch(f"{workloads}/{it['metadata']['name']}", {"spec": {"active": False}})

    def is_gated(self, pod: str) -> bool:
        """Whether Kueue holds a pod back."""
        try:
            found = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{pod}")
        except ApiError:
            return False
        return bool(found["spec"].get("schedulingGates"))


def until_told(hub: RunningHub, user: str, said: str) -> None:
    """Wait until a page of a start says this.

    Raises:
        AssertionError: The start has ended before; the message is all that it said.
    """
    messages = []
    for event in hub.follow(user):
        messages.append(event["message"])
        if event["message"] == said:
            return
    raise AssertionError(messages)


def end_of(hub: RunningHub, user: str) -> str:
    """Return the last thing that the page of a start says."""
    return str(hub.events(user)[-1]["message"])
