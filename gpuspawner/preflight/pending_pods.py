"""Pods that nobody here promised anything, and that the scheduler may bind at any moment.

After a restart of the hub its own pods are among them, so promises need not be kept on disk.
"""

import time
from collections.abc import Container

from gpuspawner.kube.pods import Pod
from gpuspawner.preflight.contention import Demand
from gpuspawner.preflight.verdicts import Subject, Verdicts
from gpuspawner.scheduling.state import ClusterState

Key = tuple[str, str]
"""Namespace and name of a pod."""

# The scheduler binds what fits within a second, and looks again at what did not fit within ten.
# What fits for longer and is not bound waits for something that cannot be seen from here.
PATIENCE_SECONDS = 30.0


class PendingPods:
    """Other people's unbound pods, for as long as they may well be bound soon.

    Args:
        state: What is known of the cluster; read only.
        verdicts: Evaluates pods against it.
        patience: Seconds that a pod which fits is counted.
    """

    def __init__(
        self, state: ClusterState, verdicts: Verdicts, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._patience = patience
        self._fitting_since: dict[tuple[Key, str], float] = {}

    def demands(self, known: Container[Key]) -> list[Demand]:
        """What they may take at this moment.

        Args:
            known: Pods that are no pending pods.
        """
        now = time.monotonic()
        fitting: dict[tuple[Key, str], float] = {}
        found: list[Demand] = []
        for pod in self._state.unbound_pods.values():
            key = (pod.metadata.namespace, pod.metadata.name)
            demand = self._verdicts.demand(Subject(pod)) if _may_be_bound(pod) else None
            if demand is None or key in known:
                continue
            since = self._fitting_since.get((key, pod.metadata.uid), now)
            fitting[key, pod.metadata.uid] = since
            if now - since <= self._patience:
                found.append(demand)
        self._fitting_since = fitting
        return found


def _may_be_bound(pod: Pod) -> bool:
    """Whether a scheduler looks at the pod, and the evaluation does not count it already."""
    return (
        not pod.spec.scheduling_gates
        and not pod.status.nominated_node_name
        and pod.metadata.deletion_timestamp is None
    )
