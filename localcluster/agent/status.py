"""Computes a pod's status from its containers' states. No input or output."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from localcluster.agent.api import Object


@dataclass(frozen=True)
class Waiting:
    """Not started yet, or about to be restarted."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True)
class Running:
    """Started at this time."""

    since: datetime


@dataclass(frozen=True)
class Terminated:
    """Ended with this exit code."""

    exit_code: int
    since: datetime
    until: datetime
    reason: str = ""
    message: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True)
class Container:
    """One container: its state, the last one that ended, and how often it restarted."""

    name: str
    image: str
    state: State = field(default_factory=Waiting)
    last: Terminated | None = None
    restarts: int = 0


def phase(containers: Sequence[Container], restart_policy: str) -> str:
    """Return the pod's phase, as the kubelet's ``getPhase`` does for plain containers."""
    states = [container.state for container in containers]
    if any(isinstance(c.state, Waiting) and c.last is None for c in containers):
        return "Pending"
    ended = [state for state in states if isinstance(state, Terminated)]
    if len(ended) < len(states) or restart_policy == "Always":
        return "Running"
    if all(state.exit_code == 0 for state in ended):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def pod_status(
    old: Object, containers: Sequence[Container], *, phase: str, ip: str, started: datetime
) -> Object:
    """Return the complete new status; what others wrote into the old one stays.

    Phase, podIP and containerStatuses must be written together: KubeSpawner treats a Running pod
    without one of the others as an error.
    """
    is_ready = phase == "Running" and all(isinstance(c.state, Running) for c in containers)
    ours = {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True" if is_ready else "False",
        "ContainersReady": "True" if is_ready else "False",
    }
    before = {condition["type"]: condition for condition in old.get("conditions", [])}
    conditions = [_condition(before, kind, value) for kind, value in ours.items()]
    conditions += [condition for kind, condition in before.items() if kind not in ours]
    return {
        **old,
        "phase": phase,
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "startTime": old.get("startTime") or timestamp(started),
        "conditions": conditions,
        "containerStatuses": [_container_status(container) for container in containers],
    }


def timestamp(moment: datetime) -> str:
    """Return a time as the API server writes it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(before: dict[str, Object], kind: str, value: str) -> Object:
    old = before.get(kind)
    if old and old["status"] == value:
        return old
    return {"type": kind, "status": value, "lastTransitionTime": timestamp(datetime.now(UTC))}


def _container_status(container: Container) -> Object:
    is_running = isinstance(container.state, Running)
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"localcluster://{container.image}",
        "containerID": f"localcluster://{container.name}-{container.restarts}",
        "restartCount": container.restarts,
        "ready": is_running,
        "started": is_running,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
    }


def _state(state: State) -> Object:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, "message": message}}
        case Running(since):
            return {"running": {"startedAt": timestamp(since)}}
        case Terminated(exit_code, since, until, reason, message):
            return {
                "terminated": {
                    "exitCode": exit_code,
                    "reason": reason or ("Completed" if exit_code == 0 else "Error"),
                    "message": message,
                    "startedAt": timestamp(since),
                    "finishedAt": timestamp(until),
                }
            }
