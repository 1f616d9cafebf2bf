"""Pods that start, and their events, as the API server writes them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.startup import StartingPod

NOTEBOOK = "notebook"
IMAGE = "quay.io/jupyter/base-notebook:2026-11-02"
CLOUD_METADATA = "block-cloud-metadata"
TOOLS = "quay.io/jupyterhub/k8s-network-tools:4.3.1"
UID = "5f1c"


def at(second: int) -> str:
    """Return a time of the start's minutes."""
    return f"2026-11-21T20:{30 + second // 60:02}:{second % 60:02}Z"


def start(
    *,
    node: str = "",
    phase: str = "Pending",
    reason: str = "",
    message: str = "",
    conditions: list[dict[str, str]] | None = None,
    notebook: Mapping[str, Any] | None = None,
    init: Mapping[str, Any] | None = None,
    restart_policy: str = "OnFailure",
    metadata: Mapping[str, Any] | None = None,
    volumes: list[dict[str, Any]] | None = None,
    gates: list[str] | None = None,
    limits: Mapping[str, str] | None = None,
) -> StartingPod:
    """Return the chart's pod of a user: an init container, and the notebook with its limits."""
    plain = {
        "metadata": {"name": "jupyter-ann", "uid": UID, "creationTimestamp": at(0)}
        | dict(metadata or {}),
        "spec": {
            "nodeName": node,
            "restartPolicy": restart_policy,
            "schedulingGates": [{"name": it} for it in gates or ()],
            "initContainers": [{"name": CLOUD_METADATA, "image": TOOLS}],
            "containers": [{"name": NOTEBOOK, "image": IMAGE, "resources": {"limits": limits}}],
            "volumes": volumes
            or [{"name": "home", "persistentVolumeClaim": {"claimName": "claim-ann"}}],
        },
        "status": {
            "phase": phase,
            "reason": reason,
            "message": message,
            "conditions": conditions,
            "containerStatuses": [{"name": NOTEBOOK, **notebook}] if notebook else None,
            "initContainerStatuses": [{"name": CLOUD_METADATA, **init}] if init else None,
        },
    }
    return msgspec.convert(plain, StartingPod)


def condition(
    type_: str, status: str = "True", since: int = 0, *, reason: str = "", message: str = ""
) -> dict[str, str]:
    """Return a condition of a pod."""
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": at(since),
        "reason": reason,
        "message": message,
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Return the status of a container that waits."""
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, reason: str = "Error", message: str = "", at_: int = 60) -> dict[str, Any]:
    """Return the state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": at(at_ - 1),
            "finishedAt": at(at_),
        }
    }


def event(
    reason: str,
    message: str,
    second: int | None = 0,
    *,
    container: str = "",
    type_: str = "Normal",
    count: int = 1,
    uid: str = UID,
    name: str = "",
) -> Event:
    """Return an event of the pod, or of one of its containers."""
    field = "initContainers" if container == CLOUD_METADATA else "containers"
    when = None if second is None else at(second)
    plain = {
        "metadata": {"name": name or f"jupyter-ann.{reason}.{second}"},
        "involvedObject": {
            "uid": uid,
            "fieldPath": f"spec.{field}{{{container}}}" if container else "",
        },
        "reason": reason,
        "message": message,
        "type": type_,
        "count": count,
        "firstTimestamp": when,
        "lastTimestamp": when,
    }
    return msgspec.convert(plain, Event)


def warning(
    reason: str, message: str, second: int | None = 0, *, container: str = "", count: int = 1
) -> Event:
    """Return a warning."""
    return event(reason, message, second, container=container, type_="Warning", count=count)


RUNS: Mapping[str, Any] = {"state": {"running": {"startedAt": at(60)}}, "ready": True}
"""The status of a container that runs."""
