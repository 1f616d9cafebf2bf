"""Reads why a node refuses a pod, and why Kubernetes ends one.

Sources: ``pkg/kubelet/lifecycle/predicate.go``, ``cm/devicemanager``, ``cm/topologymanager``,
``eviction/helpers.go``, ``nodeshutdown`` and ``preemption`` in ``pkg/kubelet``, the taint manager,
PodGC, and the scheduler's preemption, all of 1.36.2. A pod with one of these reasons as its status
has failed. All of them leave the pod as it is on its node: no node is tried again.
"""

import re

from gpuspawner.troubles.phrases import FaultPatterns, first
from gpuspawner.troubles.trouble import About, Fault, Kind

_FULL = "OutOf"
_REFUSED = {
    "TopologyAffinityError": Kind.TOPOLOGY,
    "SMTAlignmentError": Kind.TOPOLOGY,
    "EmptyPodSharedPoolError": Kind.TOPOLOGY,
    "NodeAffinity": Kind.NODE_CHANGED,
    "NodeName": Kind.NODE_CHANGED,
    "NodePorts": Kind.NODE_CHANGED,
    "TaintToleration": Kind.NODE_CHANGED,
    "MatchNodeSelector": Kind.NODE_CHANGED,
    "PodFitsHostPorts": Kind.NODE_CHANGED,
    "HostName": Kind.NODE_CHANGED,
    "VolumeAttachmentLimitExceeded": Kind.VOLUME_LIMIT,
    "NodeShutdown": Kind.NODE_SHUTDOWN,
    "Shutdown": Kind.NODE_SHUTDOWN,
    "Preempting": Kind.PREEMPTED,
    "DeadlineExceeded": Kind.DEADLINE,
    **dict.fromkeys(
        (
            "PodOSSelectorNodeLabelDoesNotMatch",
            "PodOSNotSupported",
            "InvalidNodeInfo",
            "InitContainerRestartPolicyForbidden",
            "SupplementalGroupsPolicyNotSupported",
            "UnknownReason",
            "UnexpectedPredicateFailureType",
            "AppArmor",
            "PodLevelResourcesNotSupported",
            "PodFeatureUnsupported",
            "SysctlForbidden",
        ),
        Kind.NODE_REFUSED,
    ),
}
_UNEXPECTED = (
    # NVIDIA's plugin (k8s-device-plugin v0.12 to v0.20), and GKE's (container-engine-accelerators).
    (
        re.compile(r"request size for shared resources is 1|at most 1 \S+ can be requested"),
        Kind.ONE_SHARE,
    ),
    (
        re.compile(r"number of devices unavailable for (?P<resource>\S+?)\. Requested: ?[0-9]"),
        Kind.DEVICE_TAKEN,
    ),
    (
        re.compile(
            r"cannot allocate (?:unhealthy devices|unregistered device) "
            r"(?P<resource>\S+?)[,.]?(?:\s|$)"
        ),
        Kind.DEVICE_BROKEN,
    ),
    (re.compile(r"unexpectedly allocated less resources than required"), Kind.DEVICE_TAKEN),
    (
        re.compile(
            r"device plugin|endpoint not found in cache for a registered resource|[Aa]llocate"
            r"|unknown Device Plugin|no devices found allocated|Update plugin resources"
        ),
        Kind.DEVICE_BROKEN,
    ),
)
_EVICTED = (
    (re.compile(r'EmptyDir volume "(?P<volume>[^"]*)" exceeds'), Kind.OVER_LIMIT),
    (
        re.compile(r"Container (?P<container>\S+) exceeded its local ephemeral storage limit"),
        Kind.OVER_LIMIT,
    ),
    (re.compile(r"exceeds the total limit of containers"), Kind.OVER_LIMIT),
    (
        re.compile(
            r"The node (?:had condition|was low on resource): "
            r"\[?(?P<resource>[A-Za-z.,/ -]+?)\]?\.(?: |$)"
        ),
        Kind.NODE_PRESSURE,
    ),
)


def of_ended_pod(reason: str, text: str) -> Fault | None:
    """Read the reason and the message of a failed pod's status, or of the kubelet's event.

    Returns:
        The fault, which is final; None if the reason isn't one of the kubelet's.
    """
    if reason == "UnexpectedAdmissionError":
        return _final(text, _UNEXPECTED, Kind.NODE_REFUSED)
    if reason == "Evicted":
        return _final(text, _EVICTED, Kind.EVICTED)
    if reason.startswith(_FULL) and len(reason) > len(_FULL):
        return Fault(Kind.NODE_FULL, About(resource=reason.removeprefix(_FULL)), is_final=True)
    kind = _REFUSED.get(reason)
    return Fault(kind, is_final=True) if kind else None


def of_failed_status(reason: str, text: str) -> Fault:
    """Read the status of a failed pod."""
    if reason in ("Terminated", "NodeShutdown") or "node shutdown" in text:
        return Fault(Kind.NODE_SHUTDOWN, is_final=True)
    if reason == "NodeLost":
        return Fault(Kind.NODE_LOST, is_final=True)
    found = of_ended_pod(reason, text)
    if found is None and text.startswith("Pod was rejected: "):
        return Fault(Kind.NODE_REFUSED, is_final=True)
    return found or Fault(Kind.FAILED, is_final=True)


def _final(text: str, patterns: FaultPatterns, otherwise: Kind) -> Fault:
    found = first(text, patterns) or Fault(otherwise)
    return Fault(found.kind, found.about, is_final=True)


_DISRUPTED = {
    "PreemptionByScheduler": Kind.PREEMPTED,
    "DeletionByTaintManager": Kind.TAINTED,
    "DeletionByDeviceTaintManager": Kind.TAINTED,
    "EvictionByEvictionAPI": Kind.EVICTED,
    "DeletionByPodGC": Kind.NODE_LOST,
}


def of_disruption(reason: str, text: str) -> Fault:
    """Read the condition DisruptionTarget: the pod is about to be deleted, or ended by its node."""
    if reason != "TerminationByKubelet":
        return Fault(_DISRUPTED.get(reason, Kind.EVICTED), is_final=True)
    if "preempted" in text:
        return Fault(Kind.PREEMPTED, is_final=True)
    if "shutdown" in text:
        return Fault(Kind.NODE_SHUTDOWN, is_final=True)
    return _final(text, _EVICTED, Kind.EVICTED)
