"""Which pods fit on which nodes, by gpuspawner's own evaluation of kube-scheduler's rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuspawner.scheduling import ClusterState, evaluate, explain
from localcluster.client import Object

#: The kinds besides nodes and pods that decide, by their names in `ClusterState`.
Others = Mapping[str, Sequence[Object]]


class Packing:
    """Nodes on which pods are placed one by one."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object], others: Others) -> None:
        self._nodes = list(nodes)
        self._pods = list(pods)
        self._others = others

    def copy(self) -> "Packing":
        """Return the same nodes and pods, to place others there for trial."""
        return Packing(self._nodes, self._pods, self._others)

    def add(self, node: Object) -> None:
        """Add an empty node."""
        self._nodes.append(node)

    def place(self, pod: Object) -> bool:
        """Put a pod on a node where it fits; return whether there is one."""
        feasible = evaluate(self._state(), _plain(pod)).feasible
        if feasible:
            self._pods.append({**pod, "spec": {**pod["spec"], "nodeName": feasible[0]}})
        return bool(feasible)

    def reasons(self, pod: Object, node: str) -> list[str]:
        """Return the scheduler's texts why a pod doesn't fit on a node; empty if it fits."""
        verdict = explain(self._state(), _plain(pod))
        if node in verdict.feasible:
            return []
        return verdict.reasons.get(node) or [verdict.message or "can't be scheduled"]

    def _state(self) -> ClusterState:
        kinds: dict[str, Any] = {**self._others, "nodes": self._nodes, "pods": self._pods}
        return ClusterState.from_objects(**kinds)


def _plain(pod: Object) -> Object:
    """Return the pod as for the default scheduler, whose rules the real autoscaler always uses."""
    return {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}}
