"""Reads what is wrong with a container: its status, and the words of runc, containerd, NVIDIA."""

import re
from collections.abc import Iterator

from gpuspawner.kube.startup import StartingContainerStatus, Terminated, Waiting
from gpuspawner.offers.visible_gpus import CONTAINER, FEWER
from gpuspawner.troubles.evidence import NOT_YET, PULL_FAILS, SeenContainer
from gpuspawner.troubles.images import of_pull
from gpuspawner.troubles.phrases import beginning, fault_reader, reader
from gpuspawner.troubles.trouble import About, Fault, Kind

# Reads what a container's configuration lacks.
#
# Sources: ``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/kuberuntime/security_context_others.go``
# and ``pkg/volume/{secret,configmap}`` of 1.36.2. Secrets and ConfigMaps may be created after the
# pod, as KubeSpawner does for its certificates, so a missing one isn't final.

missing = fault_reader(
    {
        r'\bsecrets? "(?P<name>[^"]*)" not found': Kind.SECRET_MISSING,
        r'\bconfigmaps? "(?P<name>[^"]*)" not found': Kind.CONFIG_MAP_MISSING,
        r"couldn't find key (?P<name>.{1,253}?) in (?:Secret|ConfigMap) ": Kind.KEY_MISSING,
        r"references? non-existent (?:secret|config) key: (?P<name>.+)": Kind.KEY_MISSING,
        r'environment variable key "(?P<name>[^"]*)" not found': Kind.KEY_MISSING,
    }
)
"""Returns the Secret, ConfigMap or key that a text says is missing; None if it says neither."""
_ROOT = re.compile(r"runAsNonRoot|breaks non-root policy")


def of_config(text: str) -> Fault | None:
    """Read why a container can't be configured; return None if the text isn't known."""
    if _ROOT.search(text):
        return Fault(Kind.RUNS_AS_ROOT, is_final=True)
    return missing(text)


# Reads why a container isn't created or started.

_kind = reader(
    {
        Kind.OUT_OF_MEMORY: (r"OOM-killed", r"oom_kill", r"out of memory"),
        Kind.IMAGE_PLATFORM: (r"exec format error",),
        Kind.GPU_DRIVER: (
            r"nvidia-container-(?:cli|runtime)",
            r"nvidia-ctk",
            r"unresolvable CDI devices",
            r"CDI device injection failed",
            r"\bnvml\b",
        ),
        # Programs and files of the node, in the words that runc and crun have for an image's, too.
        # Where runc mounts any volume, it tells its own /proc/self/fd as well.
        Kind.NODE_SOFTWARE: (
            r"apparmor",
            r"seccomp not supported",
            r"(?<!via )/proc/self/",
            r"fork/exec ",
            r'exec: \\?"(?:runc|crun|runsc|conmon|kata-|containerd-)',
        ),
        Kind.NO_SUCH_PROGRAM: (
            r"executable file .{0,999}not found",
            r"exec(?:ing)?:? .{0,999}(?:no such file or directory|permission denied)",
            r"exec(?:ing)?:? .{0,999}(?:is|not) a directory",
            r"no command specified",
        ),
        Kind.DISK_FULL: (r"no space left on device", r"disk quota exceeded"),
        Kind.DEVICE_BROKEN: (r"device plugin",),
    }
)
# The pod names the program, and the image has no other: no new try on any node helps.
_FINAL = frozenset({Kind.NO_SUCH_PROGRAM, Kind.IMAGE_PLATFORM})


def of_start(text: str) -> Fault | None:
    """Read why a container isn't created or started; return None if the text isn't known."""
    kind = _kind(text)
    return Fault(kind, is_final=kind in _FINAL) if kind else of_config(text)


_OF_NODE = (Kind.DISK_FULL, Kind.GPU_DRIVER, Kind.NODE_SOFTWARE, Kind.OUT_OF_MEMORY)
_NO_NETWORK = re.compile(r"network|\bcni\b|IP address|\bCNI\b")
_NO_RUNTIME = re.compile(
    r'no runtime for "([^"]*)"|RuntimeHandler "([^"]*)" not supported'
    r"|runtimeHandler for runtimeClassName (\S+)"
)


def of_sandbox(text: str) -> Fault:
    """Read why a pod's sandbox can't be made.

    On a new node, the network and NVIDIA's runtime may be installed only later: nothing is final.
    """
    if found := _NO_RUNTIME.search(text):
        return Fault(Kind.RUNTIME, About(name=next(it for it in found.groups() if it is not None)))
    if (kind := _kind(text)) in _OF_NODE:
        return Fault(kind)
    return Fault(Kind.NETWORK if _NO_NETWORK.search(text) else Kind.SANDBOX)


_PROBE = re.compile(r"(Readiness|Startup|Liveness) probe")


def of_probe(text: str) -> Fault:
    """Read the message of an event `Unhealthy`."""
    found = _PROBE.match(text)
    return Fault(Kind.NOT_ALIVE if found and found[1] == "Liveness" else Kind.NOT_READY)


# Reads what the check of a server's GPUs has found; see `gpuspawner.offers.visible_gpus`.

_FOUND = re.compile(r"gpuspawner: ([0-9]{1,4}) of ([0-9]{1,4}) GPUs visible")


def of_check(container: str, exit_code: int, text: str) -> Fault | None:
    """Return the fault that a container's end tells; None if it isn't the check, or says none.

    It is final: the kubelet would start the check again, with the same devices.
    """
    if container != CONTAINER or exit_code != FEWER:
        return None
    found = _FOUND.search(beginning(text))
    visible, granted = (int(found[1]), int(found[2])) if found else (0, 0)
    return Fault(Kind.GPUS_MISSING, About(granted=granted, visible=visible), is_final=True)


# Reads what a container's status says is wrong.

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


def of_end(ended: Terminated, container: SeenContainer, restart_policy: str) -> Fault | None:
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
