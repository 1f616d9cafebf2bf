"""The scheduler's condition of a pending pod."""

from gpuspawner.kube.pods import Pod


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler has found no node for the pod and isn't clearing one for it.

    The scheduler writes the condition ``PodScheduled`` with status ``False`` and reason
    ``Unschedulable`` (Kubernetes documentation, "Pod Lifecycle", pod conditions).
    """
    return not pod.status.nominated_node_name and any(
        condition.type == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in pod.status.conditions or ()
    )
