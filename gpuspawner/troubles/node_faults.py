"""Reads why a node refuses a pod, and why Kubernetes ends one.

Sources: ``pkg/kubelet/lifecycle/predicate.go``, ``cm/devicemanager``, ``cm/topologymanager``,
``eviction/helpers.go``, ``nodeshutdown`` and ``preemption`` in ``pkg/kubelet``, the taint manager,
PodGC, and the scheduler's preemption, all of 1.36.2. A pod with one of these reasons as its status
has failed. All of them leave the pod as it is on its node: no node is tried again.
"""

from msgspec.structs import replace

from gpuspawner.troubles.phrases import fault_reader
from gpuspawner.troubles.trouble import About, Fault, Kind

_FULL = "OutOf"
_REFUSED = {
    Kind.TOPOLOGY: {"TopologyAffinityError", "SMTAlignmentError", "EmptyPodSharedPoolError"},
    Kind.NODE_CHANGED: {
        "NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "MatchNodeSelector",
        "PodFitsHostPorts", "HostName",
    },
    Kind.VOLUME_LIMIT: {"VolumeAttachmentLimitExceeded"},
    Kind.NODE_SHUTDOWN: {"NodeShutdown", "Shutdown"},
    Kind.PREEMPTED: {"Preempting"},
    Kind.DEADLINE: {"DeadlineExceeded"},
    Kind.NODE_REFUSED: {
        "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo",
        "InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported",
        "UnknownReason", "UnexpectedPredicateFailureType", "AppArmor",
        "PodLevelResourcesNotSupported", "PodFeatureUnsupported", "SysctlForbidden",
    },
}  # fmt: skip
"""The reasons for which a node refuses a pod."""
_unexpected = fault_reader(
    {
        # NVIDIA's plugin (k8s-device-plugin v0.12 to v0.20), and GKE's
        # (container-engine-accelerators).
        r"request size for shared resources is 1|at most 1 \S+ can be requested": Kind.ONE_SHARE,
        r"number of devices unavailable for (?P<resource>\S+?)\. Requested: ?[0-9]": (
            Kind.DEVICE_TAKEN
        ),
        r"cannot allocate (?:unhealthy devices|unregistered device) "
        r"(?P<resource>\S+?)[,.]?(?:\s|$)": Kind.DEVICE_BROKEN,
        r"unexpectedly allocated less resources than required": Kind.DEVICE_TAKEN,
        r"device plugin|endpoint not found in cache for a registered resource|[Aa]llocate"
        r"|unknown Device Plugin|no devices found allocated|Update plugin resources": (
            Kind.DEVICE_BROKEN
        ),
    }
)
_evicted = fault_reader(
    {
        r'EmptyDir volume "(?P<volume>[^"]*)" exceeds': Kind.OVER_LIMIT,
        r"Container (?P<container>\S+) exceeded its local ephemeral storage limit": Kind.OVER_LIMIT,
        r"exceeds the total limit of containers": Kind.OVER_LIMIT,
        r"The node (?:had condition|was low on resource): "
        r"\[?(?P<resource>[A-Za-z.,/ -]+?)\]?\.(?: |$)": Kind.NODE_PRESSURE,
    }
)


def of_ended_pod(reason: str, text: str) -> Fault | None:
    """Read the reason and the message of a failed pod's status, or of the kubelet's event.

    Returns:
        The fault, which is final; None if the reason isn't one of the kubelet's.
    """
    if reason == "UnexpectedAdmissionError":
        return _final(_unexpected(text) or Fault(Kind.NODE_REFUSED))
    if reason == "Evicted":
        return _final(_evicted(text) or Fault(Kind.EVICTED))
    if reason.startswith(_FULL) and len(reason) > len(_FULL):
        return Fault(Kind.NODE_FULL, About(resource=reason.removeprefix(_FULL)), is_final=True)
    kind = next((kind for kind, reasons in _REFUSED.items() if reason in reasons), None)
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


def _final(fault: Fault) -> Fault:
    return replace(fault, is_final=True)


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
    return _final(_evicted(text) or Fault(Kind.EVICTED))
