"""Nodes that are lost: what the real controllers see without waiting for it."""

from datetime import UTC, datetime

from localcluster.client import Client
from localcluster.nodes import SILENT

#: What the node lifecycle controller writes 50 seconds after a kubelet's last word
#: (pkg/controller/nodelifecycle/node_lifecycle_controller.go, v1.36.2).
UNKNOWN = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}


def lose(api: Client, name: str) -> None:
    """Let a node die, and say at once what the controller would say 50 seconds later.

    The controllers do the rest: they taint the node, and evict its pods when these no longer
    tolerate it. They taint no node if all of a cluster are lost.
    """
    path = f"/api/v1/nodes/{name}"
    api.patch(path, {"metadata": {"annotations": {SILENT: "true"}}})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lost = UNKNOWN | {"lastHeartbeatTime": now, "lastTransitionTime": now}
    others = [c for c in api.get(path)["status"]["conditions"] if c["type"] != "Ready"]
    api.patch(f"{path}/status", {"status": {"conditions": [lost, *others]}})


def find_again(api: Client, name: str) -> None:
    """Let a node that was lost come back; its kubelet reports it Ready."""
    api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {SILENT: None}}})
