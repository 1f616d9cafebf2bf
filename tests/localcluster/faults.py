"""Pods on whose way to running something shall go wrong, and what is told of them."""

from __future__ import annotations

import json
from typing import Any

from localcluster import LocalCluster
from localcluster.client import Object
from tests.waiting import wait_for

IMAGE = "registry.example.org/lab:1"
ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}


def pod(name: str = "p", image: str = IMAGE, **faults: str) -> Object:
    """Return a pod with annotations: ``pull_seconds="3"`` is ``localcluster/pull-seconds``."""
    annotations = {annotation(key): text for key, text in faults.items()}
    container = {"name": "notebook", "image": image, "resources": {}}
    spec = {"containers": [container], "restartPolicy": "OnFailure"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def annotation(name: str) -> str:
    """Return the annotation's whole name: ``pull_seconds`` is ``localcluster/pull-seconds``."""
    return f"localcluster/{name.replace('_', '-')}"


def with_gpus(made: Object, count: int) -> Object:
    """Return the pod with a limit of GPUs."""
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(count)}}
    return made


def with_requests(made: Object, **requests: str) -> Object:
    """Return the pod with requests, and so no longer BestEffort."""
    made["spec"]["containers"][0]["resources"] = {"requests": requests}
    return made


class Told:
    """What the API server says of the pods of one namespace."""

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self.api = cluster.api
        self._kubectl = cluster.kubectl
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}"

    def create(self, pod: Object) -> Object:
        return self.api.create(f"{self.path}/pods", pod)

    def delete(self, name: str) -> None:
        self.api.delete(f"{self.path}/pods/{name}", grace=0)

    def status(self, name: str = "p") -> dict[str, Any]:
        status: dict[str, Any] = self.api.get(f"{self.path}/pods/{name}")["status"]
        return status

    def phase(self, name: str = "p") -> str:
        return str(self.status(name)["phase"])

    def container(self, name: str = "p") -> dict[str, Any]:
        [container] = self.status(name).get("containerStatuses", [{}])
        assert isinstance(container, dict)
        return container

    def waiting(self, name: str = "p") -> dict[str, str]:
        waiting: dict[str, str] = self.container(name).get("state", {}).get("waiting", {})
        return waiting

    def condition(self, kind: str, name: str = "p") -> dict[str, str]:
        """Return a condition without its times."""
        found = [c for c in self.status(name).get("conditions", []) if c["type"] == kind]
        texts = [{key: c.get(key, "") for key in ("status", "reason", "message")} for c in found]
        return texts[0] if texts else {}

    def wait_for_reason(self, reason: str, name: str = "p") -> str:
        """Wait until the container waits for this reason; return the message."""

        def found() -> dict[str, str] | None:
            waiting = self.waiting(name)
            return waiting if waiting.get("reason") == reason else None

        return wait_for(found).get("message", "")

    def wait_for_change_to(self, reason: str, made: Object) -> str:
        """Wait until the container has waited for this reason, however shortly.

        Args:
            reason: The reason.
            made: The pod as it was made; all its changes since then are read.

        Returns:
            The message.
        """
        name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
        query = f"fieldSelector=metadata.name={name}&resourceVersion={version}"
        changes = f"{self.path}/pods?watch=true&timeoutSeconds=1&{query}"

        def found() -> dict[str, str] | None:
            for line in self._kubectl("get", "--raw", changes).splitlines():
                [container] = json.loads(line)["object"]["status"].get("containerStatuses", [{}])
                waiting: dict[str, str] = container.get("state", {}).get("waiting", {})
                if waiting.get("reason") == reason:
                    return waiting
            return None

        return wait_for(found)["message"]

    def wait_for_phase(self, phase: str, name: str = "p") -> dict[str, Any]:
        """Wait until the pod has this phase; return its status."""

        def found() -> dict[str, Any] | None:
            status = self.status(name)
            return status if status.get("phase") == phase else None

        return wait_for(found)

    def annotate_node(self, name: str = "gpu-0", **annotations: str | None) -> None:
        """Annotate a node: ``low_memory="60Mi"`` is ``localcluster/low-memory``."""
        changed = {annotation(key): text for key, text in annotations.items()}
        self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": changed}})

    def events(self, name: str = "p") -> list[Object]:
        """Return the events about a pod, oldest first, without the scheduler's."""
        query = f"fieldSelector=involvedObject.name={name}"
        found = self.api.items(f"{self.path}/events?{query}")
        ours = [e for e in found if e["reportingComponent"] != "default-scheduler"]
        return sorted(ours, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def texts(self, name: str = "p") -> list[str]:
        """Return reason and message of each event."""
        return [f"{event['reason']}: {event['message']}" for event in self.events(name)]

    def wait_for_event(self, reason: str, name: str = "p", count: int = 1) -> Object:
        """Wait for an event of this reason that happened so often, and return it."""

        def found() -> Object | None:
            events = [e for e in self.events(name) if e["reason"] == reason]
            return next((e for e in events if e["count"] >= count), None)

        return wait_for(found)
