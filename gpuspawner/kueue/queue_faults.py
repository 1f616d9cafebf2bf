"""Reads why Kueue has ended a pod, from the condition that it writes before it deletes the pod.

``Stop`` in ``pkg/controller/jobs/pod/pod_controller.go``, ``stopJob`` in
``pkg/controller/jobframework/reconciler.go`` and ``pkg/scheduler/preemption`` of Kueue 0.15.0.
"""

from gpuspawner.launch.trouble import Fault, Kind

CONDITION = "TerminationTarget"
_EVICTED = "WorkloadEvictedDueTo"
_STOPPED = ("ClusterQueueStopped", "LocalQueueStopped")
_RECLAIMED = "within the cohort"


def of_termination(reason: str, text: str) -> Fault:
    """Read the condition's reason and message; whatever they say, the pod is deleted."""
    why = reason.removeprefix(_EVICTED)
    if why == "Preempted":
        kind = Kind.QUEUE_RECLAIMED if _RECLAIMED in text else Kind.QUEUE_PREEMPTED
    else:
        kind = Kind.QUEUE_STOPPED if why in _STOPPED else Kind.QUEUE_EVICTED
    return Fault(kind, is_final=True)
