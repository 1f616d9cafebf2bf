"""Kueue's objects as the API writes them, and what the hub reads of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.kube.objects import AnyObject, Undecodable, convert, decode
from gpuspawner.kube.pods import Pod
from localcluster.kueue.objects import cluster_queue, local_queue, resource_flavor

GPU = "nvidia.com/gpu"
Plain = Mapping[str, Any]


def known(*objects: Plain, store: KueueObjects | None = None) -> KueueObjects:
    """Everything that the hub knows: these objects, and no others."""
    store = KueueObjects() if store is None else store
    for kind in ("LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "Workload"):
        store.mark_known(kind)
    for it in objects:
        store.put(read(it))
    return store


def read(plain: Plain) -> AnyObject | Undecodable:
    """What the hub reads of an object."""
    return decode(plain["kind"], msgspec.json.encode(plain))


def queue(name: str = "gpus", pool: str = "team-a", **spec: Any) -> Plain:
    return local_queue(name, "jhub", pool, **spec)


def flavor(name: str = "t4", **spec: Any) -> Plain:
    return resource_flavor(name, **spec)


def pool(
    name: str, *quotas: Plain, names: tuple[str, ...] = ("t4", "a100"), used: int = 0, **spec: Any
) -> Plain:
    """A ClusterQueue with quotas of GPUs in the flavors of these names; the first one is in use."""
    flavors = {it: {GPU: dict(quota)} for it, quota in zip(names, quotas, strict=False)}
    made = cluster_queue(name, flavors, **spec)
    usage = [{"name": names[0], "resources": [{"name": GPU, "total": str(used)}]}]
    made["status"] = {"flavorsReservation": usage}
    return made


def inactive(pool: Plain, why: str) -> Plain:
    """A ClusterQueue of which Kueue says that it admits nobody."""
    active = {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": why}
    return {**pool, "status": {**pool["status"], "conditions": [active]}}


def orphan(queue: Plain) -> Plain:
    """A LocalQueue of which Kueue says that it has no ClusterQueue."""
    active = {"type": "Active", "status": "False", "reason": "ClusterQueueDoesNotExist"}
    return {**queue, "status": {"conditions": [active]}}


def cohort(name: str, parent: str = "") -> Plain:
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": parent}}


def workload(
    name: str, *, second: int = 0, queue: str = "gpus", priority: int = 0, **conditions: str
) -> Plain:
    """A workload of the pod with the uid of its name; conditions are reasons or messages."""
    told = [
        {"type": type_, "status": "False" if text else "True", "message": text}
        for type_, text in conditions.items()
    ]
    return {
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "jhub",
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
            "ownerReferences": [{"kind": "Pod", "name": name, "uid": f"uid-{name}"}],
        },
        "spec": {"queueName": queue, "priority": priority},
        "status": {"conditions": told},
    }


def pod(gpus: int = 1, namespace: str = "jhub", **spec: Any) -> Pod:
    container = {"name": "notebook", "resources": {"limits": {GPU: str(gpus)}}}
    metadata = {"name": "jupyter-ann", "namespace": namespace}
    made = convert("Pod", {"metadata": metadata, "spec": {"containers": [container], **spec}})
    assert isinstance(made, Pod)
    return made
