"""Plain storage objects for the tests of the rules."""

from collections.abc import Mapping, Sequence
from typing import Any

Plain = dict[str, Any]

HOME = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-a"}}
"""A volume of a pod: the home directory of `a`."""
STORAGE_KINDS = (
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
)

WAIT = {
    "metadata": {"name": "wait"},
    "provisioner": "csi",
    "volumeBindingMode": "WaitForFirstConsumer",
}
NOW = {"metadata": {"name": "now"}, "provisioner": "csi", "volumeBindingMode": "Immediate"}
LOCAL = {
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(
    name: str = "home",
    volume: str | None = None,
    class_: str | None = "wait",
    modes: Sequence[str] = ("ReadWriteOnce",),
    size: str = "10Gi",
    **meta: Any,
) -> Plain:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "hub",
            "uid": f"uid-{name}",
            "annotations": {**annotations, **meta.pop("annotations", {})},
            **meta,
        },
        "spec": {
            "accessModes": list(modes),
            "storageClassName": class_,
            "volumeName": volume or "",
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(
    name: str = "disk",
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    claim: str | None = None,
    class_: str | None = "wait",
    size: str = "10Gi",
    **spec: Any,
) -> Plain:
    if zone:
        expression = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    if claim:
        spec["claimRef"] = {"namespace": "hub", "name": claim, "uid": f"uid-{claim}"}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": class_,
            **spec,
        },
        "status": {"phase": "Bound" if claim else "Available"},
    }


def uses(*names: str) -> Plain:
    """Return the volumes of a pod's spec that use some claims."""
    return {
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    }
