"""Replays a recording on a second control plane with the same nodes.

The twin creates each refused request as a pod at the moment of its refusal. The pod would have
fitted if kube-scheduler finds a node for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from localcluster import LocalCluster
from tests.race.replay import Line, Moment, Picture, moments
from tests.waiting import wait_for

GPU = "nvidia.com/gpu"
_PODS = "/api/v1/namespaces/default/pods"
_NODES = "/api/v1/nodes"
_VERSION = "version"


@dataclass(frozen=True)
class Misjudged:
    """A refusal even though there was room.

    Attributes:
        refusal: The line of the recording.
        node: The node that the twin's scheduler chose.
        picture: What the hub's view showed at the time.
    """

    refusal: Line
    node: str
    picture: Picture

    def __str__(self) -> str:
        asked = f"{self.refusal['name']}, {self.refusal['gpus']} GPUs, fits on {self.node}"
        facts = {key: value for key, value in self.refusal.items() if key not in ("name", "gpus")}
        return f"{asked}: {facts}; replayed: {self.picture}"


class Twin:
    """Replays recordings.

    Args:
        cluster: A control plane for this alone, with a scheduler and the same nodes.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._questions = count(1)
        self._nodes: dict[str, Line] | None = None
        self._version = ""

    def would_have_fitted(self, recording: Iterable[Line], since: int = 0) -> list[Misjudged]:
        """Return the refusals from the given line on for which the scheduler finds a node."""
        return [wrong for moment in moments(recording, since) for wrong in self._wrong(moment)]

    def _wrong(self, moment: Moment) -> list[Misjudged]:
        self._make_nodes(moment.picture.nodes)
        self._make_pods(moment.picture.bound)
        # One after another: one pod might take another's room.
        places = {gpus: self._place(gpus) for gpus in {line["gpus"] for line in moment.refusals}}
        return [
            Misjudged(refusal, node, moment.picture)
            for refusal in moment.refusals
            if (node := places[refusal["gpus"]])
        ]

    def _make_nodes(self, nodes: dict[str, Line]) -> None:
        """Make the nodes as recorded, and give all of them a new version.

        Changes of nodes and of pods reach the scheduler in no common order, so the pods of a
        replay select nodes of this version.
        """
        if nodes == self._nodes:
            return
        self._nodes, self._version = nodes, str(next(self._questions))
        for node in self._cluster.api.items(_NODES):
            name = node["metadata"]["name"]
            room = nodes.get(name, {"gpus": 0, "taints": [], "unschedulable": True})
            amounts = {GPU: str(room["gpus"])}
            status = {"status": {"allocatable": amounts, "capacity": amounts}}
            self._cluster.api.patch(f"{_NODES}/{name}/status", status)
            spec = {key: room[key] for key in ("taints", "unschedulable")}
            labels = {"labels": {_VERSION: self._version}}
            self._cluster.api.patch(f"{_NODES}/{name}", {"metadata": labels, "spec": spec})

    def _make_pods(self, bound: dict[str, tuple[str, int]]) -> None:
        there = {
            pod["metadata"]["name"]: (pod["spec"]["nodeName"], _gpus(pod))
            for pod in self._cluster.api.items(_PODS)
        }
        for name in [name for name, where in there.items() if bound.get(name) != where]:
            self._cluster.api.delete(f"{_PODS}/{name}", grace=0)
        for name, (node, gpus) in bound.items():
            if there.get(name) != (node, gpus):
                self._cluster.api.create(_PODS, _pod(name, gpus, {"nodeName": node}))

    def _place(self, gpus: int) -> str:
        """Return the node that the scheduler finds for a pod of this size, "" for none.

        Each pod has a new name, so that a late answer about one isn't taken for an answer about
        the next.
        """
        name = f"question-{next(self._questions)}"
        selector = {"nodeSelector": {_VERSION: self._version}}
        self._cluster.api.create(_PODS, _pod(name, gpus, selector))
        pod = wait_for(lambda: self._answered(name), timeout=60)
        self._cluster.api.delete(f"{_PODS}/{name}", grace=0)
        return str(pod["spec"].get("nodeName", ""))

    def _answered(self, name: str) -> Line:
        """Return the pod if the scheduler has decided about it, else {}."""
        pod = self._cluster.api.get(f"{_PODS}/{name}")
        return pod if _is_answered(pod) else {}


def _pod(name: str, gpus: int, spec: dict[str, Any]) -> dict[str, Any]:
    asked = {GPU: str(gpus)}
    container = {"name": "notebook", "image": "x", "resources": {"limits": asked}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def _gpus(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])


def _is_answered(pod: dict[str, Any]) -> bool:
    """Return whether the pod has a node, or the scheduler found none among the newest nodes."""
    return bool(pod["spec"].get("nodeName")) or any(
        condition["type"] == "PodScheduled"
        and condition["status"] == "False"
        and "node affinity/selector" not in condition["message"]
        for condition in pod["status"].get("conditions", [])
    )
