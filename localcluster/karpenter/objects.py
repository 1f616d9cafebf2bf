"""The objects and files that Karpenter reads."""

from dataclasses import asdict

from localcluster.client import Object
from localcluster.karpenter.settings import InstanceType, Karpenter, NodePool
from localcluster.nodes import DEVICES_AFTER, KEPT

GROUP = "karpenter.sh"
KWOK_GROUP = "karpenter.kwok.sh"
NODE_CLASS = "localcluster"

_ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
_ON_DEMAND = {"key": f"{GROUP}/capacity-type", "operator": "In", "values": ["on-demand"]}


def instance_type(kind: InstanceType) -> Object:
    """Return an instance type as the kwok provider's file has it."""
    labels = [
        {"key": key, "operator": "In", "values": [value]} for key, value in kind.labels.items()
    ]
    offering = {
        "Price": kind.price,
        "Available": True,
        "Requirements": [_ZONE, _ON_DEMAND, *labels],
    }
    return {
        "name": kind.name,
        "offerings": [offering],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"ephemeral-storage": "100Gi", **kind.resources},
    }


def node_class(settings: Karpenter) -> Object:
    """Return the KWOKNodeClass of all pools."""
    return {
        "apiVersion": f"{KWOK_GROUP}/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": NODE_CLASS},
        "spec": {"nodeRegistrationDelay": f"{settings.registration_seconds}s"},
    }


def node_pool(pool: NodePool, device_seconds: float) -> Object:
    """Return a NodePool, whose nodes the local cluster's agent keeps."""
    annotations = {KEPT: "true"}
    if device_seconds:
        annotations[DEVICES_AFTER] = str(device_seconds)
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "NodePool",
        "metadata": {"name": pool.name},
        "spec": {
            "limits": dict(pool.limits),
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {
                "metadata": {"labels": dict(pool.labels), "annotations": annotations},
                "spec": {
                    "expireAfter": "Never",
                    "nodeClassRef": {
                        "group": KWOK_GROUP,
                        "kind": "KWOKNodeClass",
                        "name": NODE_CLASS,
                    },
                    "requirements": [
                        {key: value for key, value in asdict(r).items() if value}
                        for r in pool.requirements
                    ],
                    "taints": [asdict(taint) for taint in pool.taints],
                },
            },
        },
    }
