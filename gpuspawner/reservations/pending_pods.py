"""Pending pods: unbound pods without a reservation that the scheduler may bind at any moment.

After a restart the hub's own pods are among them, so reservations needn't be kept on disk.
"""

import time
from collections.abc import Container

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Key
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.scheduling.contention import Demand
from gpuspawner.scheduling.node_resources_fit import Asked, wanted
from gpuspawner.scheduling.priority import priority_of
from gpuspawner.scheduling.requests import pod_requests
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts

# The scheduler binds a pod that fits within a second, and retries one that didn't fit within ten. A
# pod that fits for longer waits for something that the hub can't see, or for its volume to be made.
# Then the scheduler keeps its room for up to 600 s (`bindTimeoutSeconds` of VolumeBinding). But who
# waits for that here is refused, and the cluster may add a node for them, or let them end the pod.
PATIENCE_SECONDS = 30.0


_PodId = tuple[Key, str]
"""The key and the uid of a pod."""


class PendingPods:
    """Pods without a reservation; one that fits counts for `PATIENCE_SECONDS`.

    Thousands of pods of a batch system may be pending, and each start asks whenever the cluster
    changes. So those that no node has enough left for cost no verdict.
    """

    def __init__(self, state: ClusterState, verdicts: Verdicts) -> None:
        self._state = state
        self._verdicts = verdicts
        self._fitting_since: dict[_PodId, float] = {}
        self._fitting = UntilChanged[dict[_PodId, Demand]]()
        self._nominated = UntilChanged[dict[Key, Demand]]()
        self._followers = UntilChanged[list[Demand]]()
        self._asked: dict[Key, tuple[Pod, Asked | None]] = {}
        """What each pod requests; None if nobody can read it."""

    def demands(self, known: Container[Key]) -> list[Demand]:
        """Return what these pods may take at this moment; the *known* ones have reservations."""
        now = time.monotonic()
        fitting = self._fitting.of(self._state.version, (), self._find)
        since = {it: self._fitting_since.get(it, now) for it in fitting if it[0] not in known}
        self._fitting_since = since
        nominated = self._nominated.of(self._state.version, (), self._find_nominated)
        return [
            *(fitting[it] for it, first in since.items() if now - first <= PATIENCE_SECONDS),
            *(it for key, it in nominated.items() if key not in known),
        ]

    def _find_nominated(self) -> dict[Key, Demand]:
        """Find the pods for which a scheduler keeps room on a node, perhaps until others end there.

        The evaluation counts them for a pod of theirs and no lower priority; but one node's room
        may be promised to two pods that fit beside them.
        """
        if not self._state.has_nominations:  # thousands of pods may be pending
            return {}
        return {
            pod.metadata.key: self._verdicts.demand_on(Subject(pod), node)
            for pod in self._state.unbound_pods.values()
            if (node := pod.status.nominated_node_name)
            and pod.metadata.deletion_timestamp is None
            and (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in self._state.rules.schedulers
        }

    def followers(self) -> list[Demand]:
        """Return what pods may take that end no others, of the room that others free.

        The scheduler leaves the nominations of pods with a lower priority aside. Call this after
        `demands`.
        """
        return self._followers.of(self._state.version, (), self._find_followers)

    def _find_followers(self) -> list[Demand]:
        found = (
            self._verdicts.following(Subject(pod))
            for pod, asked in self._asked.values()
            if pod.spec.preemption_policy == "Never" and self._may_fit(pod, asked)
        )
        return [it for it in found if it]

    def _find(self) -> dict[_PodId, Demand]:
        """Find the pods that fit at this moment, or once the scheduler has ended others."""
        self._asked = {
            pod.metadata.key: self._asked_by(pod)
            for pod in self._state.unbound_pods.values()
            if may_be_bound(pod)
        }
        return {
            (key, pod.metadata.uid): demand
            for key, (pod, asked) in self._asked.items()
            if self._may_fit(pod, asked) and (demand := self._verdicts.demand(Subject(pod)))
        }

    def _may_fit(self, pod: Pod, asked: Asked | None) -> bool:
        if asked is None:
            return False
        priority = priority_of(pod, self._state)
        return self._verdicts.may_fit(asked, priority.value if priority.known else None)

    def _asked_by(self, pod: Pod) -> tuple[Pod, Asked | None]:
        known = self._asked.get(pod.metadata.key)
        if known is not None and known[0] is pod:
            return known
        try:
            return pod, wanted(pod_requests(pod, self._state.rules))
        except QuantityError:  # no scheduler binds it
            return pod, None


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
