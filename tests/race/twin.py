"""A second control plane with the same nodes, in which a recording is played again.

There a request that was refused is created at the moment of its refusal, and kube-scheduler says
whether it would have fitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from localcluster import LocalCluster
from tests.waiting import wait_for

GPU = "nvidia.com/gpu"
_PODS = "/api/v1/namespaces/default/pods"

Line = dict[str, Any]


@dataclass
class Twin:
    """Plays recordings.

    Args:
        cluster: A control plane that nobody else touches, with a scheduler and the same nodes.
    """

    cluster: LocalCluster

    def would_have_fitted(self, recording: Iterable[Line]) -> list[str]:
        """The names of those who were refused although the scheduler finds a node for them."""
        bound: dict[str, tuple[str, int]] = {}
        refused: dict[str, int] = {}
        wrongly: list[str] = []
        for line in recording:
            name, what = line["name"], line["what"]
            if what == "refused" and line["reason"] != "try-again":
                refused[name] = line["gpus"]
                continue
            after = dict(bound)
            if what == "bound":
                after[name] = (line["node"], line["gpus"])
            elif what == "gone":
                after.pop(name, None)
            if after != bound:
                wrongly += self._fitting(bound, refused)
                bound, refused = after, {}
        return wrongly + self._fitting(bound, refused)

    def _fitting(self, bound: dict[str, tuple[str, int]], refused: dict[str, int]) -> list[str]:
        """Who of those refused while this was bound gets a node from the scheduler."""
        if not refused:
            return []
        self._make(bound)
        sizes = sorted(set(refused.values()))
        for gpus in sizes:
            self.cluster.api.create(_PODS, _pod(f"refused-{gpus}", gpus))
        pods = wait_for(lambda: self._answered(len(sizes)), timeout=60)
        fitting = {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}
        for gpus in sizes:
            self.cluster.api.delete(f"{_PODS}/refused-{gpus}", grace=0)
        return [name for name, gpus in refused.items() if f"refused-{gpus}" in fitting]

    def _make(self, bound: dict[str, tuple[str, int]]) -> None:
        there = {
            pod["metadata"]["name"]: (pod["spec"]["nodeName"], _gpus(pod))
            for pod in self.cluster.api.items(_PODS)
        }
        for name in [name for name, where in there.items() if bound.get(name) != where]:
            self.cluster.api.delete(f"{_PODS}/{name}", grace=0)
        for name, (node, gpus) in bound.items():
            if there.get(name) != (node, gpus):
                self.cluster.api.create(_PODS, _pod(name, gpus, node))

    def _answered(self, count: int) -> list[dict[str, Any]] | None:
        """The pods created at the moment of a refusal, once the scheduler has looked at all."""
        pods = [
            pod
            for pod in self.cluster.api.items(_PODS)
            if pod["metadata"]["name"].startswith("refused-")
            and (pod["spec"].get("nodeName") or _is_unschedulable(pod))
        ]
        return pods if len(pods) == count else None


def _pod(name: str, gpus: int, node: str = "") -> dict[str, Any]:
    asked = {GPU: str(gpus)}
    container = {"name": "notebook", "image": "x", "resources": {"limits": asked}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name}, "spec": {**spec, "nodeName": node} if node else spec}


def _gpus(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])


def _is_unschedulable(pod: dict[str, Any]) -> bool:
    return any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in pod["status"].get("conditions", [])
    )
