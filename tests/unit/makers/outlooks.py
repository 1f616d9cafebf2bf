"""Outlooks for pods on clusters that are described in a few lines."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuspawner.cluster.autoscaler_objects import STATUS, AutoscalerObjects
from gpuspawner.kube.autoscaling import ConfigMap, NodeClaim, NodePool
from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, Outlook, WhyNoNode
from gpuspawner.scaling.pools import NONE, DeclaredPool, Pools
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts
from tests.unit.makers.objects import cluster

Plain = dict[str, Any]

T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def node(
    name: str,
    gpus: int = 2,
    memory: str = "32Gi",
    labels: dict[str, str] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    **spec: object,
) -> Plain:
    amounts = {"cpu": "8", "memory": memory, "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {
            "name": name,
            "labels": T4 if labels is None else labels,
            "creationTimestamp": created,
        },
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def plain_pod(
    name: str = "a",
    gpus: int = 1,
    memory: str = "8Gi",
    selector: dict[str, str] | None = None,
    **spec: object,
) -> Plain:
    requests = {"memory": memory, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {"name": "notebook", "resources": {"requests": requests, "limits": requests}}
    selected = T4 if selector is None else selector
    return {
        "metadata": {"name": name, "namespace": "jhub", "uid": name},
        "spec": {"containers": [container], "nodeSelector": selected, **spec},
    }


def pod(*args: Any, **fields: Any) -> Pod:
    made = convert("Pod", plain_pod(*args, **fields))
    assert isinstance(made, Pod)
    return made


state = cluster


def autoscalers(
    pools: tuple[Plain, ...] = (), claims: tuple[Plain, ...] = (), status: str | None = None
) -> AutoscalerObjects:
    """Return the objects of autoscalers, all of them known."""
    objects = AutoscalerObjects()
    for kind in ("NodePool", "NodeClaim", "ConfigMap", "ClusterAutoscaler", "MachineAutoscaler"):
        objects.mark_known(kind)
    for plain in pools:
        objects.put(msgspec.convert(plain, NodePool))
    for plain in claims:
        objects.put(msgspec.convert(plain, NodeClaim))
    if status is not None:
        objects.put(status_map(status))
    return objects


def status_map(status: str) -> ConfigMap:
    namespace, name = STATUS
    plain = {"metadata": {"name": name, "namespace": namespace}, "data": {"status": status}}
    return msgspec.convert(plain, ConfigMap)


class Cluster:
    """A cluster whose outlooks share reservations and what has been learned."""

    def __init__(
        self,
        known: ClusterState,
        objects: AutoscalerObjects | None = None,
        autoscaling: str = NONE,
    ) -> None:
        self.state = known
        self.verdicts = Verdicts(known)
        self.reservations = Reservations(known, self.verdicts)
        self.pools = Pools(known, objects or autoscalers(), autoscaling)
        self.to_come = NodesToCome(known, self.verdicts, self.reservations, self.pools)

    def outlook(self, asked: Pod, accelerator: Accelerator | None = None) -> Outlook:
        key = (asked.metadata.namespace, asked.metadata.name)
        return self.to_come.outlook(key, Subject(asked), DeclaredPool.of(accelerator))


def outlook(
    known: ClusterState,
    asked: Pod,
    accelerator: Accelerator | None = None,
    objects: AutoscalerObjects | None = None,
    autoscaling: str = NONE,
) -> Outlook:
    return Cluster(known, objects, autoscaling).outlook(asked, accelerator)


def declared(most: int) -> Accelerator:
    """Return an accelerator whose nodes an administrator lets grow to so many, in 8 minutes."""
    return Accelerator("t4", "T4", "nvidia.com/gpu", node_selector=T4, scale_up=ScaleUp(most, 8))


def asks(gpus: int = 1, **spec: Any) -> Pod:
    """Return a pod that selects no nodes by itself."""
    return pod(gpus=gpus, selector=spec.pop("selector", {}), **spec)


def why(found: object) -> list[WhyNoNode]:
    """Return the reasons of an outlook that promises nothing."""
    assert isinstance(found, CannotScaleUp), found
    return [it.why for it in found.obstacles]


def short(found: Outlook) -> object:
    """Return the reasons of an outlook, or the kind of what it promises, or a chance as it is."""
    match found:
        case CannotScaleUp():
            return why(found)
        case CanScaleUp():
            return CanScaleUp
    return found
