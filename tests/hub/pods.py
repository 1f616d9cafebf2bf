"""A hub's pods on the API server, and the scheduler's decisions about them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from localcluster import LocalCluster
from tests.waiting import wait_for


@dataclass
class Pods:
    """The pods of one namespace.

    Attributes:
        cluster: The cluster.
        namespace: The hub's namespace.
    """

    cluster: LocalCluster
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def all(self) -> list[dict[str, Any]]:
        return self.cluster.api.items(self.path)

    def names(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.all()}

    def of(self, user: str) -> dict[str, Any]:
        """The pod of *user*'s default server."""
        pod: dict[str, Any] = self.cluster.api.get(f"{self.path}/jupyter-{user}")
        return pod

    def delete(self, user: str) -> None:
        """Remove the pod of *user*'s default server at once."""
        self.cluster.api.delete(f"{self.path}/jupyter-{user}", grace=0)

    def bound(self, user: str) -> dict[str, Any]:
        """The pod of *user*'s server, once the scheduler has bound it."""

        def on_a_node() -> dict[str, Any] | None:
            # On a busy machine the hub may answer before it sends the pod.
            named = (pod for pod in self.all() if pod["metadata"]["name"] == f"jupyter-{user}")
            return next((pod for pod in named if pod["spec"].get("nodeName")), None)

        return wait_for(on_a_node)

    def outcome(self, spec: dict[str, Any]) -> tuple[str, str]:
        """Create a pod without the hub, and return the scheduler's decision about it.

        Returns:
            The node that it was bound to ("" for none), and the scheduler's message ("" for none).
        """
        name = "made-without-the-hub"
        self.cluster.api.create(self.path, {"metadata": {"name": name}, "spec": spec})
        made = wait_for(lambda: self._decided(name))
        self.cluster.api.delete(f"{self.path}/{name}", grace=0)
        wait_for(lambda: name not in self.names())
        return made["spec"].get("nodeName", ""), _message(made)

    def _decided(self, name: str) -> dict[str, Any] | None:
        pod: dict[str, Any] = self.cluster.api.get(f"{self.path}/{name}")
        return pod if pod["spec"].get("nodeName") or _message(pod) else None


def asking_for(pod: dict[str, Any], resource: str, count: int) -> dict[str, Any]:
    """Return the spec of a pod like *pod*, but unbound and requesting *count* of a resource."""
    spec: dict[str, Any] = deepcopy(pod["spec"])
    spec.pop("nodeName", None)
    for side in spec["containers"][0]["resources"].values():
        if resource in side:
            side[resource] = str(count)
    return spec


def _message(pod: dict[str, Any]) -> str:
    conditions = pod["status"].get("conditions", [])
    scheduled = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
    return str(scheduled[0]["message"]) if scheduled else ""
