"""Cluster Autoscaler's node groups, as its status writes them, and their nodes."""

from __future__ import annotations

from typing import Any

from gpuspawner.scaling.outlook import MayScaleUp, Source
from tests.unit.makers.outlooks import Plain, asks, autoscalers, node, outlook, state

EKS = "eks.amazonaws.com/nodegroup"
UUID = "4ac1b2c3-1111-2222-3333-444455556666"
MAY = MayScaleUp(Source.CLUSTER_AUTOSCALER, is_listed=True)
GPU = {"nvidia.com/gpu.present": "true"}
CORDONED = {"unschedulable": True}

# The beginning of what versions before 1.30 write.
BEFORE_1_30 = """\
Cluster-autoscaler status at 2099-01-01 00:00:00 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=3 unready=0 registered=3 longUnregistered=0)
               LastProbeTime:      2099-01-01 00:00:00 +0000 UTC

NodeGroups:
  Name:        eks-gpu-1
  Health:      Healthy (ready=1 registered=1 cloudProviderTarget=4 (minSize=0, maxSize=4))
"""


def status(*groups: str) -> str:
    return "autoscalerStatus: Running\nnodeGroups:\n" + "".join(groups)


def group(
    name: str = f"eks-gpu-{UUID}",
    target: int = 1,
    most: int = 4,
    registered: int = 1,
    health: str = "Healthy",
    scale_up: str = "NoActivity",
    leaving: int = 0,
    lost: int = 0,
) -> str:
    return (
        f"- name: {name}\n  health:\n    status: {health}\n    nodeCounts:\n"
        f"      registered:\n        total: {registered}\n        beingDeleted: {leaving}\n"
        f"      longUnregistered: {lost}\n"
        f"    cloudProviderTarget: {target}\n    minSize: 0\n    maxSize: {most}\n"
        f"  scaleUp:\n    status: {scale_up}\n"
        "    backoffInfo:\n      errorCode: OUT_OF_RESOURCES\n"
    )


def member(name: str = "n", gpus: int = 1, pool: str = "gpu", **more: Any) -> Plain:
    labels = {EKS: pool, **more.pop("labels", {})}
    return node(name, gpus, labels=labels, **{**CORDONED, **more})


def look(*groups: str, nodes: tuple[Plain, ...] = (member(),), asked: Any = None) -> Any:
    objects = autoscalers(status=status(*groups))
    return outlook(state(*nodes), asked or asks(), objects=objects, autoscaling="detect")
