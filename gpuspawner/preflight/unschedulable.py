"""What the scheduler has said of a pod that waits."""

from gpuspawner.kube.pods import Pod


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler has looked, found no node and makes room on none.

    It writes the condition ``PodScheduled`` with status ``False`` and reason ``Unschedulable``
    (Kubernetes documentation, "Pod Lifecycle", pod conditions).
    """
    return not pod.status.nominated_node_name and any(
        condition.type == "PodScheduled"
        and condition.status == "False"
        and condition.reason == "Unschedulable"
        for condition in pod.status.conditions or ()
    )
