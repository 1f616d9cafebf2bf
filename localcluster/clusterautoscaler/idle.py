"""Removes nodes that nothing has used for a while."""

from collections.abc import Sequence

from localcluster.client import ApiError, Client, Object
from localcluster.clusterautoscaler.groups import Group

#: The real one's taint for a node that it is about to delete.
TAINT = "ToBeDeletedByClusterAutoscaler"


class IdleNodes:
    """The nodes without pods, and since when.

    Args:
        api: a client of the cluster.
        seconds: how long a node is idle before it is removed; None removes none.
    """

    def __init__(self, api: Client, seconds: float | None) -> None:
        self._api = api
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def remove(self, groups: Sequence[Group], pods: Sequence[Object], now: float) -> dict[str, int]:
        """Taint what was idle long enough, delete what was tainted before, down to the minimum.

        Returns:
            How many nodes of each group are idle.
        """
        used = {pod["spec"].get("nodeName") for pod in pods}
        idle = {
            group.name: [node for node in group.ready() if node["metadata"]["name"] not in used]
            for group in groups
        }
        names = {node["metadata"]["name"] for nodes in idle.values() for node in nodes}
        self._since = {name: self._since.get(name, now) for name in names}
        if self._seconds is not None:
            for group in groups:
                spare = max(0, group.target - group.scaling.min_size)
                for node in idle[group.name][:spare]:
                    if now - self._since[node["metadata"]["name"]] >= self._seconds:
                        self._take_away(node, now)
        return {name: len(nodes) for name, nodes in idle.items()}

    def _take_away(self, node: Object, now: float) -> None:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        taints = node["spec"].get("taints", [])
        try:
            if any(taint["key"] == TAINT for taint in taints):
                self._api.delete(path)
            else:
                # No pod may come between this look and the next.
                added = {"key": TAINT, "value": str(int(now)), "effect": "NoSchedule"}
                version = {"resourceVersion": node["metadata"]["resourceVersion"]}
                change = {"metadata": version, "spec": {"taints": [*taints, added]}}
                self._api.patch(path, change)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
