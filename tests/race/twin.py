"""Replays a recording on a second control plane with the same nodes.

The twin creates each refused request as a pod at the moment of its refusal. The pod would have
fitted if kube-scheduler finds a node for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from localcluster import LocalCluster
from tests.race.recording import Line
from tests.race.stage import GPU, Object, gpus_of, nodes, pod_asking_for
from tests.waiting import wait_for

_PODS = "/api/v1/namespaces/default/pods"
_NODES = "/api/v1/nodes"
_VERSION = "version"

Lines = Mapping[str, Line]
"""The newest line about each node or pod, by name."""


@dataclass(frozen=True)
class Picture:
    """What a hub's view shows: the nodes, and the pods on them."""

    nodes: Lines = field(default_factory=dict)
    bound: Lines = field(default_factory=dict)

    def after(self, line: Line) -> Picture:
        """Return the picture after this line of the recording."""
        match line.what:
            case "node":
                return replace(self, nodes={**self.nodes, line.name: line})
            case "node-gone":
                return replace(self, nodes=_without(self.nodes, line.name))
            case "bound":
                return replace(self, bound={**self.bound, line.name: line})
            case "gone":
                return replace(self, bound=_without(self.bound, line.name))
        return self


@dataclass(frozen=True)
class Moment:
    """A picture, and the refusals for lack of room while it was the newest."""

    picture: Picture
    refusals: list[Line]


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
        return f"refused, but fits on {self.node}: {self.refusal}; replayed: {self.picture}"


def moments(recording: Iterable[Line], since: int = 0) -> Iterator[Moment]:
    """Yield the moments with refusals.

    Args:
        recording: All lines since the hub's start, so that the picture is complete.
        since: The first line from which to yield refusals.
    """
    picture, refusals = Picture(), []
    for number, line in enumerate(recording):
        if line.what == "refused" and line.reason != "try-again" and number >= since:
            refusals.append(line)
        after = picture.after(line)
        if after != picture:
            if refusals:
                yield Moment(picture, refusals)
            picture, refusals = after, []
    if refusals:
        yield Moment(picture, refusals)


class Twin:
    """Replays recordings on a control plane that nothing else uses meanwhile."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._questions = count(1)
        self._nodes: Lines | None = None

    def would_have_fitted(self, recording: Iterable[Line], since: int = 0) -> list[Misjudged]:
        """Return the refusals from the given line on for which the scheduler finds a node."""
        return [wrong for moment in moments(recording, since) for wrong in self._wrong(moment)]

    def _wrong(self, moment: Moment) -> list[Misjudged]:
        self._make_nodes(moment.picture.nodes)
        self._make_pods(moment.picture.bound)
        # One after another: one pod might take another's room.
        places = {gpus: self._place(gpus) for gpus in {line.gpus for line in moment.refusals}}
        return [
            Misjudged(refusal, node, moment.picture)
            for refusal in moment.refusals
            if (node := places[refusal.gpus])
        ]

    def _make_nodes(self, recorded: Lines) -> None:
        """Make the nodes as recorded, and wait until the scheduler sees them so.

        Changes of nodes and of pods reach it in no common order, but those of nodes do. So when it
        has put a pod on the last node in its new version, it has seen them all.
        """
        if recorded == self._nodes:
            return
        self._nodes, version = recorded, {_VERSION: str(next(self._questions))}
        for node in self._cluster.api.items(_NODES):
            name = node["metadata"]["name"]
            line = recorded.get(name, Line("node-gone", name, unschedulable=True))
            amounts = {GPU: str(line.gpus)}
            status = {"status": {"allocatable": amounts, "capacity": amounts}}
            self._cluster.api.patch(f"{_NODES}/{name}/status", status)
            spec = {"taints": line.taints, "unschedulable": line.unschedulable}
            patch = {"metadata": {"labels": version}, "spec": spec}
            self._cluster.api.patch(f"{_NODES}/{name}", patch)
        on_last = {**version, "kubernetes.io/hostname": name}
        self._ask(0, _node, nodeSelector=on_last, tolerations=[{"operator": "Exists"}])

    def _make_pods(self, recorded: Lines) -> None:
        pods = self._cluster.api.items(_PODS)
        there = {it["metadata"]["name"]: (it["spec"]["nodeName"], gpus_of(it)) for it in pods}
        bound = {name: (line.node, line.gpus) for name, line in recorded.items()}
        for name, where in there.items():
            if bound.get(name) != where:
                self._cluster.api.delete(f"{_PODS}/{name}", grace=0)
        for name, (node, gpus) in bound.items():
            if there.get(name) != (node, gpus):
                self._cluster.api.create(_PODS, _pod(gpus, name, nodeName=node))

    def _place(self, gpus: int) -> str:
        """Return the node that the scheduler finds for a pod of this size, "" for none.

        Each pod has a new name, so that a late answer about one isn't taken for an answer about
        the next.
        """
        return _node(self._ask(gpus, _is_answered))

    def _ask(self, gpus: int, is_answered: Callable[[Object], object], **spec: object) -> Object:
        """Make a pod, wait for the scheduler's answer, and delete it."""
        name = f"question-{next(self._questions)}"
        path = f"{_PODS}/{name}"
        self._cluster.api.create(_PODS, _pod(gpus, name, **spec))
        wait_for(lambda: is_answered(self._cluster.api.get(path)))
        pod = self._cluster.api.get(path)
        self._cluster.api.delete(path, grace=0)
        return pod


@contextmanager
def twin_on(cluster: LocalCluster) -> Iterator[Twin]:
    """Give the twin the races' nodes on a cluster."""
    names = cluster.add_nodes(nodes())
    try:
        yield Twin(cluster)
    finally:
        cluster.remove_nodes(names)


def _without(lines: Lines, name: str) -> Lines:
    return {key: line for key, line in lines.items() if key != name}


def _pod(gpus: int, name: str, **spec: object) -> Object:
    return pod_asking_for(gpus, name, terminationGracePeriodSeconds=0, **spec)


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _is_answered(pod: Object) -> bool:
    """Return whether the pod has a node, or the scheduler found none."""
    return bool(_node(pod)) or any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in pod["status"].get("conditions", [])
    )
