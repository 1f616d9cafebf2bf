"""Node objects as a kubelet would register them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from localcluster.binaries import KUBERNETES_VERSION
from localcluster.fleet import Fleet, NodeGroup

#: The agent keeps only the nodes with this annotation Ready.
KEPT = "localcluster/kept"
#: With the value "true" the agent stops renewing the node's Lease: the node dies.
SILENT = "localcluster/silent"
#: The API server puts this taint on every new node.
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


def node_objects(fleet: Fleet) -> Iterator[dict[str, object]]:
    """Yield a Node object, Ready, for each node of the fleet."""
    for group in fleet.groups:
        for name in group.node_names():
            yield node_object(name, group)


def node_object(name: str, group: NodeGroup) -> dict[str, object]:
    """Return one node of a group as a Node object whose condition Ready is True."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **group.labels,
    }
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in group.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {KEPT: "true"}},
        "spec": {"taints": taints},
        "status": {
            "allocatable": dict(group.allocatable),
            "capacity": dict(group.allocatable),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "the local cluster's agent keeps this node",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
            ],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "localcluster://1",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{KUBERNETES_VERSION}",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "localcluster",
                "systemUUID": "",
            },
        },
    }
