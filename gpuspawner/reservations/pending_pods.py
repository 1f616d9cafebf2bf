"""Pending pods: unbound pods without a reservation that the scheduler may bind at any moment.

After a restart the hub's own pods are among them, so reservations needn't be kept on disk.
"""

import time
from collections.abc import Container

from gpuspawner.kube.meta import Key
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling.contention import Demand
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts

# The scheduler binds a pod that fits within a second, and retries one that didn't fit within ten. A
# pod that fits for longer waits for something that the hub can't see.
PATIENCE_SECONDS = 30.0


class PendingPods:
    """Pods without a reservation; one that fits counts for *patience* seconds."""

    def __init__(
        self, state: ClusterState, verdicts: Verdicts, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._patience = patience
        self._fitting_since: dict[tuple[Key, str], float] = {}

    def demands(self, known: Container[Key]) -> list[Demand]:
        """Return what these pods may take at this moment; the *known* ones have reservations."""
        now = time.monotonic()
        fitting: dict[tuple[Key, str], float] = {}
        found: list[Demand] = []
        for pod in self._state.unbound_pods.values():
            key = pod.metadata.key
            demand = self._verdicts.demand(Subject(pod)) if may_be_bound(pod) else None
            if demand is None or key in known:
                continue
            since = self._fitting_since.get((key, pod.metadata.uid), now)
            fitting[key, pod.metadata.uid] = since
            if now - since <= self._patience:
                found.append(demand)
        self._fitting_since = fitting
        return found


def may_be_bound(pod: Pod) -> bool:
    """Whether the scheduler considers the pod, and the evaluation doesn't count it already."""
    return (
        not pod.spec.scheduling_gates
        and not pod.status.nominated_node_name
        and pod.metadata.deletion_timestamp is None
    )


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
