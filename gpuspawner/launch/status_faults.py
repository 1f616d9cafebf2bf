"""Reads what a container's status says is wrong."""

from collections.abc import Iterator

from gpuspawner.kube.startup import StartingContainerStatus, Terminated, Waiting
from gpuspawner.launch.config_faults import of_config
from gpuspawner.launch.container_faults import of_start
from gpuspawner.launch.evidence import NOT_YET, PULL_FAILS, Container
from gpuspawner.launch.gpu_faults import of_check
from gpuspawner.launch.image_faults import of_pull
from gpuspawner.launch.phrases import beginning
from gpuspawner.launch.trouble import About, Fault, Kind

_CREATES = frozenset(
    {"CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError"}
)
# The container runtime couldn't start the program.
_NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})


def of_waiting(waiting: Waiting, image: str) -> Fault | None:
    """Return what a container waits for, if it shouldn't have to."""
    reason, text = waiting.reason, beginning(waiting.message)
    if reason in NOT_YET:
        return None
    if reason in PULL_FAILS:
        return of_pull(text, image, reason)
    if reason in _CREATES:
        return of_start(text) or Fault(Kind.CONTAINER_CREATION)
    if reason == "CreateContainerConfigError":
        return of_config(text) or Fault(Kind.CONTAINER_CONFIG)
    kinds = {"CrashLoopBackOff": Kind.CRASH_LOOP, "PostStartHookError": Kind.POST_START_HOOK}
    return Fault(kinds.get(reason, Kind.UNKNOWN))


def of_devices(status: StartingContainerStatus) -> Iterator[tuple[Fault, str]]:
    """Yield each device that its plugin or driver calls broken, and what it says of it.

    The kubelet tells it with the feature ResourceHealthStatus.
    """
    for resource in status.allocated_resources_status or ():
        for device in resource.resources or ():
            if device.health == "Unhealthy":
                about = About(resource=resource.name, name=device.resource_id)
                yield Fault(Kind.DEVICE_BROKEN, about), device.message or device.health


def of_end(ended: Terminated, container: Container, restart_policy: str) -> Fault | None:
    """Return why a container has ended; None if it has done its work.

    It is final if the kubelet doesn't start the container again.
    """
    found = of_check(container.name, ended.exit_code, ended.message)
    fault = found or _of_end(ended, is_init=container.is_init)
    if fault is None:
        return None
    policy = container.spec.restart_policy or restart_policy
    ends = policy == "Never" or (policy == "OnFailure" and fault.kind is Kind.ENDED)
    ends = ends and not container.spec.restart_policy_rules
    return Fault(fault.kind, fault.about, is_final=fault.is_final or ends)


def _of_end(ended: Terminated, *, is_init: bool) -> Fault | None:
    if ended.reason == "OOMKilled":
        return Fault(Kind.OUT_OF_MEMORY)
    if ended.reason in _NOT_STARTED:
        return of_start(beginning(ended.message)) or Fault(Kind.CONTAINER_CREATION)
    if ended.reason == "ContainerStatusUnknown":
        return Fault(Kind.NODE_LOST)
    if ended.exit_code or ended.signal:
        return Fault(Kind.CRASHED)
    return None if is_init else Fault(Kind.ENDED)
