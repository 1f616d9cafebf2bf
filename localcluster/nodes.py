"""Node objects as a kubelet would register them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from localcluster.binaries import KUBERNETES_VERSION
from localcluster.client import Object
from localcluster.fleet import Fleet, NodeGroup

#: The agent keeps only the nodes with this annotation Ready.
KEPT = "localcluster/kept"
#: With the value "true" the agent stops renewing the node's Lease: the node dies.
SILENT = "localcluster/silent"
#: A node's annotation: the name of its group in the fleet.
GROUP = "localcluster/group"
#: A node's annotation: the seconds from its registration until it reports its devices.
DEVICES_AFTER = "localcluster/devices-after"
#: A node's annotation: the devices that it will report, as JSON, if it registers without them.
DEVICES = "localcluster/devices"
#: A node's annotation: every image that it doesn't list takes so many seconds to be pulled.
PULL_SECONDS = "localcluster/pull-seconds"
#: A node's annotation: how many devices its plugin calls unhealthy, by resource, as JSON.
UNHEALTHY_DEVICES = "localcluster/unhealthy-devices"
#: The same of devices that the kubelet has lost, and that the API server doesn't know of yet.
LOST_DEVICES = "localcluster/lost-devices"
#: The same of devices that a container has been given, but doesn't see.
HIDDEN_DEVICES = "localcluster/hidden-devices"
#: A node's annotation: how much memory is left on it, such as 60Mi; its kubelet evicts the pods.
LOW_MEMORY = "localcluster/low-memory"
#: The same of its disk, such as 800Mi.
LOW_DISK = "localcluster/low-disk"
#: The API server puts this taint on every new node.
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
#: A node that Karpenter adds has this taint until Karpenter has seen it; the effect is NoExecute.
UNREGISTERED_TAINT = "karpenter.sh/unregistered"


def node_objects(fleet: Fleet) -> Iterator[Object]:
    """Yield a Node object, Ready, for each node of the fleet."""
    for group in fleet.groups:
        for name in group.node_names():
            yield node_object(name, group)


def starting_node(name: str, group: NodeGroup, device_seconds: float) -> Object:
    """Return a node as it registers: not Ready, and without the devices that come later."""
    node = node_object(name, group)
    node["status"]["conditions"][0] |= {"status": "False", "reason": "KubeletNotReady"}
    devices = {key: count for key, count in group.allocatable.items() if is_device(key, count)}
    if device_seconds and devices:
        after = {DEVICES_AFTER: str(device_seconds), DEVICES: json.dumps(devices)}
        node["metadata"]["annotations"] |= after
        for part in ("allocatable", "capacity"):
            node["status"][part] = {
                key: count for key, count in group.allocatable.items() if key not in devices
            }
    return node


def is_device(resource: str, count: str) -> bool:
    """Return whether a node has devices of this resource, which device plugins report."""
    return "/" in resource and count != "0"


def amounts(node: Object, annotation: str) -> dict[str, int]:
    """Return the numbers of devices in a node's annotation, by resource."""
    text = node["metadata"].get("annotations", {}).get(annotation, "{}")
    return {resource: int(number) for resource, number in json.loads(text).items()}


def node_object(name: str, group: NodeGroup) -> Object:
    """Return one node of a group as a Node object whose condition Ready is True."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **group.labels,
    }
    annotations = {KEPT: "true", GROUP: group.name}
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in group.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
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
