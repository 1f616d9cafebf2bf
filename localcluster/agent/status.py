"""Computes a pod's status from its containers' states. No input or output."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from localcluster.agent.api import Object

#: What a container of a pod with init containers waits for.
INITIALIZING = "PodInitializing"

_TERMINAL = ("Succeeded", "Failed")
_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


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
    is_sidecar: bool = False


def phase(
    containers: Sequence[Container], restart_policy: str, init: Sequence[Container] = ()
) -> str:
    """Return the pod's phase, as the kubelet's ``getPhase`` does for plain containers."""
    if restart_policy == "Never" and any(_has_failed(each) for each in init):
        return "Failed"
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
    old: Object,
    containers: Sequence[Container],
    *,
    phase: str,
    ip: str,
    started: datetime,
    init: Sequence[Container] = (),
) -> Object:
    """Return the complete status; what others wrote into the old one stays.

    Phase, podIP and containerStatuses must be written together: KubeSpawner treats a Running pod
    without one of the others as an error.

    Args:
        old: the status so far.
        containers: those that run side by side.
        phase: the pod's phase.
        ip: its address; "" before its sandbox exists.
        started: when the kubelet first saw it.
        init: those that must end, or as sidecars start, before the others.
    """
    before = {condition["type"]: condition for condition in old.get("conditions", [])}
    others = [condition for kind, condition in before.items() if kind not in _OWN]
    conditions = [
        _condition(before, kind, *value)
        for kind, value in _conditions(containers, init, phase, ip).items()
    ]
    status = {
        **old,
        "phase": phase,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "startTime": old.get("startTime") or timestamp(started),
        "conditions": [*conditions, *others],
        "containerStatuses": [_container_status(container) for container in containers],
    }
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    if init:
        status["initContainerStatuses"] = [_container_status(each, is_init=True) for each in init]
    return status


def timestamp(moment: datetime) -> str:
    """Return a time as the API server writes it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: A condition's status, reason and message.
_Value = tuple[str, str, str]


def _conditions(
    containers: Sequence[Container], init: Sequence[Container], phase: str, ip: str
) -> dict[str, _Value]:
    """Return the kubelet's conditions (pkg/kubelet/status/generate.go, v1.36.2)."""
    has_sandbox = bool(ip) and phase not in _TERMINAL
    ready = _ready(containers, init, phase)
    return {
        "PodReadyToStartContainers": ("True" if has_sandbox else "False", "", ""),
        "Initialized": _initialized(containers, init, phase),
        "Ready": ready,
        "ContainersReady": ready,
    }


def _initialized(containers: Sequence[Container], init: Sequence[Container], phase: str) -> _Value:
    if phase == "Succeeded":
        return "True", "PodCompleted", ""
    # A regular container that has started proves it.
    started = any(not isinstance(c.state, Waiting) or c.last for c in containers)
    incomplete = [] if started else [each.name for each in init if not _is_done(each)]
    if not incomplete:
        return "True", "", ""
    names = " ".join(incomplete)
    return "False", "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _ready(containers: Sequence[Container], init: Sequence[Container], phase: str) -> _Value:
    if phase in _TERMINAL:
        return "False", "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    sidecars = [each for each in init if each.is_sidecar]
    unready = [c.name for c in [*sidecars, *containers] if not isinstance(c.state, Running)]
    if not unready and phase == "Running":
        return "True", "", ""
    names = " ".join(unready)
    return "False", "ContainersNotReady", f"containers with unready status: [{names}]"


def _is_done(init: Container) -> bool:
    if init.is_sidecar:
        return isinstance(init.state, Running)
    return isinstance(init.state, Terminated) and init.state.exit_code == 0


def _has_failed(init: Container) -> bool:
    state = init.state
    return not init.is_sidecar and isinstance(state, Terminated) and state.exit_code != 0


def _condition(
    before: dict[str, Object], kind: str, value: str, reason: str, message: str
) -> Object:
    old = before.get(kind, {})
    is_same = old.get("status") == value
    moment = old["lastTransitionTime"] if is_same else timestamp(datetime.now(UTC))
    condition = {"type": kind, "status": value, "lastTransitionTime": moment}
    told = {"reason": reason, "message": message}
    return condition | {key: text for key, text in told.items() if text}


def _container_status(container: Container, *, is_init: bool = False) -> Object:
    is_running = isinstance(container.state, Running)
    was_created = not isinstance(container.state, Waiting) or container.last
    status = {
        "name": container.name,
        "image": container.image,
        "imageID": f"localcluster://{container.image}" if was_created else "",
        "restartCount": container.restarts,
        "ready": _is_done(container) if is_init else is_running,
        "started": is_running,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
    }
    if was_created:
        status["containerID"] = f"localcluster://{container.name}-{container.restarts}"
    return status


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
