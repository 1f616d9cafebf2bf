"""Reads what an event of a pod says is wrong, with its volumes too."""

import re
from collections.abc import Callable
from enum import Enum, auto

from gpuspawner.kube.autoscaling import Event
from gpuspawner.troubles.container_faults import missing, of_probe, of_sandbox, of_start
from gpuspawner.troubles.images import of_pull
from gpuspawner.troubles.node_faults import of_ended_pod
from gpuspawner.troubles.phrases import beginning
from gpuspawner.troubles.trouble import About, Fault, Kind


class Until(Enum):
    """What ends a trouble, unless it is final."""

    CONTAINERS = auto()
    """The first container: the pod has its volumes and its network."""
    IMAGE = auto()
    """The container has its image."""
    RUNS = auto()
    """The container runs."""
    READY = auto()
    """The container is ready, or has done its work."""
    LATER = auto()
    """Anything that the start reaches after it."""
    NEVER = auto()


_PULL = re.compile(
    r"Failed to pull image |Back-off pulling image |Error: (?:ErrImage|ImagePull|ImageInspect"
    r"|InvalidImageName|RegistryUnavailable|SignatureValidationFailed)"
)
# kube-scheduler's condition and the autoscalers' answers are read elsewhere.
_ELSEWHERE = frozenset(
    {"FailedScheduling", "NotTriggerScaleUp", "TriggeredScaleUp", "FailedScaleUp", "Nominated"}
)
# The kubelet warns of these, and starts the pod.
_HARMLESS = frozenset({
    "AlreadyMountedVolume", "CheckLimitsForResolvConf", "DNSConfigForming",
    "InvalidEnvironmentVariableNames", "MissingClusterDNS", "PossibleMemoryBackedVolumesOnDisk",
    "ProbeWarning", "VolumePermissionChangeInProgress",
})  # fmt: skip
# The scheduler took a pod back that it hadn't bound yet, and will try again.
_TAKEN_BACK = "(in kube-scheduler memory)"
_TAINTS = ("TaintManagerEviction", "DeviceTaintManagerEviction")


_READERS: dict[str, tuple[Callable[[str], Fault], Until]] = {
    "FailedCreatePodSandBox": (of_sandbox, Until.CONTAINERS),
    "FailedPodSandBoxStatus": (of_sandbox, Until.CONTAINERS),
    "FailedCreatePodContainer": (of_sandbox, Until.CONTAINERS),
    "NetworkNotReady": (lambda _: Fault(Kind.NETWORK), Until.CONTAINERS),
    "FailedPrepareDynamicResources": (lambda _: Fault(Kind.DEVICES_UNPREPARED), Until.CONTAINERS),
    "InspectFailed": (of_pull, Until.IMAGE),
    "ErrImageNeverPull": (of_pull, Until.IMAGE),
    "FailedToRetrieveImagePullSecret": (lambda _: Fault(Kind.PULL_SECRET), Until.IMAGE),
    "BackOff": (lambda _: Fault(Kind.CRASH_LOOP), Until.READY),
    "FailedPostStartHook": (lambda _: Fault(Kind.POST_START_HOOK), Until.READY),
    "Unhealthy": (of_probe, Until.READY),
}
_OF_VOLUMES = frozenset({"FailedAttachVolume", "FailedMount", "FailedMapVolume"})


def of_event(event: Event) -> tuple[list[Fault], Until]:
    """Return what an event says is wrong, and what ends that."""
    reason, text = event.reason, beginning(event.text)
    if reason in ("Failed", "BackOff") and _PULL.match(text):
        return [of_pull(text)], Until.IMAGE
    if reason == "Failed":
        return [of_start(text) or Fault(Kind.CONTAINER_CREATION)], Until.RUNS
    if reason in _OF_VOLUMES:
        return of_volume(text, reason), Until.CONTAINERS
    if reason in _READERS:
        read, until = _READERS[reason]
        return [read(text)], until
    return _of_node(event, text)


def _of_node(event: Event, text: str) -> tuple[list[Fault], Until]:
    if event.reason == "Preempted":
        if _TAKEN_BACK in text:
            return [Fault(Kind.PREEMPTED)], Until.LATER
        return [Fault(Kind.PREEMPTED, is_final=True)], Until.NEVER
    if event.reason in _TAINTS:
        return ([] if cancels(event) else [Fault(Kind.TAINTED)]), Until.NEVER
    if event.reason == "NodeNotReady":
        return [Fault(Kind.NODE_LOST)], Until.LATER
    if event.type != "Warning" or event.reason in _ELSEWHERE | _HARMLESS:
        return [], Until.NEVER
    ended = of_ended_pod(event.reason, text)
    return ([Fault(Kind.UNKNOWN)], Until.LATER) if ended is None else ([ended], Until.NEVER)


def cancels(event: Event) -> bool:
    """Whether the taint manager says that it doesn't delete the pod after all."""
    return event.reason in _TAINTS and event.text.startswith("Cancelling deletion")


# Reads why a volume isn't attached or mounted.
#
# Sources: ``pkg/controller/volume/attachdetach/reconciler``, ``pkg/volume/util/operationexecutor``
# and ``pkg/kubelet/volumemanager`` of 1.36.2. A driver uses the words of its cloud: those of GCE,
# EBS, Azure, OpenStack, vSphere, Oracle, DigitalOcean, Hetzner, Longhorn and Ceph are known here.
# ResourceExhausted is what CSI's specification has for a node that can't have more volumes.

_VOLUME = re.compile(r'for volume "([^"]*)"')
_PODS = re.compile(r"already used by pod\(s\) ([-a-z0-9.]+(?:, [-a-z0-9.]+)*)")
_NODE = re.compile(r"(?<!be )attached to (?:the )?node:? \"?([a-z0-9][-a-z0-9.]*)")
_IN_USE = re.compile(
    r"Multi-Attach|RESOURCE_IN_USE|VolumeInUse|already in use by|' is in use|still being used"
    r"|already (?:being used|(?:exclusively )?attached) |is currently (?:attached|being detached)"
    r"|attached to (?:a different|the wrong)|attachment is being deleted",
    re.IGNORECASE,
)
_NO_MORE = re.compile(r"code = ResourceExhausted|AttachmentLimitExceeded")
_UNMOUNTED = re.compile(
    r"(?:unmounted volumes|list of unattached/unmounted volumes|volumes)=\[(.*?)\]"
)
_CLAIM = re.compile(r'persistentvolumeclaims? "([^"]*)" (?:not found|is being deleted)')
_MOST = 64


def of_volume(text: str, reason: str = "") -> list[Fault]:
    """Read the message of FailedAttachVolume, FailedMount or FailedMapVolume.

    Returns:
        A fault for each volume that it names; one without a volume if it names none.
    """
    claim = _CLAIM.search(text)
    if claim is not None:
        return [Fault(Kind.CLAIM_MISSING, About(claim=claim[1]))]
    named = _VOLUME.search(text)
    volume = named[1] if named else ""
    if _IN_USE.search(text):
        return [Fault(Kind.VOLUME_IN_USE, About(volume=volume), holders=_holders(text))]
    if lacking := missing(text):
        return [Fault(lacking.kind, About(volume=volume, name=lacking.about.name))]
    waited_for = None if named else _UNMOUNTED.search(text)
    if waited_for is not None:
        names = waited_for[1].split()[:_MOST]
        return [Fault(Kind.VOLUME_WAITS, About(volume=it)) for it in names or [""]]
    if reason != "FailedAttachVolume":
        return [Fault(Kind.VOLUME_MOUNT, About(volume=volume))]
    kind = Kind.VOLUME_LIMIT if _NO_MORE.search(text) else Kind.VOLUME_ATTACH
    return [Fault(kind, About(volume=volume))]


def _holders(text: str) -> tuple[str, ...]:
    pods = _PODS.search(text)
    if pods is not None:
        return tuple(it.rstrip(".") for it in pods[1].split(", "))
    node = _NODE.search(text)
    return (node[1],) if node else ()
