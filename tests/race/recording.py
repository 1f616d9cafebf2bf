"""Records the changes that a hub's view saw and its preflight's answers, in order, as JSON lines.

It runs inside the hub, whose configuration calls `into`. It writes each line in the same tick as
the change or answer, so the lines before a refusal are exactly the changes that it knew.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from gpuspawner import runtime
from gpuspawner.kube.nodes import Node
from gpuspawner.kube.pods import Pod
from gpuspawner.launch.unscheduled import PromisedRoom
from gpuspawner.preflight.decision import Decision, Refuse, Start
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.reserving import Reserving
from gpuspawner.scheduling.state import ClusterState

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Line:
    """A change of the view, or an answer of the preflight.

    Attributes:
        what: ``node`` and ``node-gone``; ``bound`` and ``gone`` for pods; ``refused``,
            ``accepted``, ``unchecked`` for an answer, and ``taken`` for one that refuses a pod
            which was accepted before.
        name: The node's or the pod's.
        gpus: How many the node has, or the pod asks for.
        node: Where the pod is bound.
        taints: The node's.
        unschedulable: Whether the node is cordoned.
        reason: Of a refusal.
        saw: What the gate knew when it refused, for debugging.
    """

    what: str
    name: str
    gpus: int = 0
    node: str = ""
    taints: list[dict[str, str]] = field(default_factory=list)
    unschedulable: bool = False
    reason: str = ""
    saw: str = ""


@dataclass(frozen=True)
class Recording:
    """The file of a recording."""

    path: Path

    def lines(self, since: int = 0) -> list[Line]:
        """Return the lines from the given one on, without the one being written."""
        written = self.path.read_text().split("\n")[since:-1]
        return [Line(**json.loads(line)) for line in written]

    def written(self) -> int:
        """Return how many lines the hub has recorded."""
        return self.path.read_bytes().count(b"\n")


def into(path: str, namespace: str) -> None:
    """Record all changes of nodes and of the pods of *namespace* from now on."""
    recorder = Recorder(Path(path), namespace)
    recorder.watch_the_view()
    recorder.watch_the_preflight()


class Recorder:
    """Appends lines about the nodes and the pods of one namespace to a file."""

    def __init__(self, path: Path, namespace: str) -> None:
        self._file = path.open("a", buffering=1)
        self._namespace = namespace

    def watch_the_view(self) -> None:
        put, remove = ClusterState.put, ClusterState.remove

        @wraps(put)
        def recorded_put(state: ClusterState, thing: Any) -> None:
            was_bound = _key(thing) in state.pods
            put(state, thing)
            if isinstance(thing, Node):
                self._write(_of_node(thing))
            if isinstance(thing, Pod) and thing.metadata.namespace == self._namespace:
                name = thing.metadata.name
                if _key(thing) in state.pods:
                    self._write(Line("bound", name, _gpus(thing), thing.spec.node_name or ""))
                elif was_bound or _key(thing) not in state.unbound_pods:
                    self._write(Line("gone", name))

        @wraps(remove)
        def recorded_remove(state: ClusterState, kind: str, namespace: str, name: str) -> None:
            remove(state, kind, namespace, name)
            if kind == "Node":
                self._write(Line("node-gone", name))
            if (kind, namespace) == ("Pod", self._namespace):
                self._write(Line("gone", name))

        ClusterState.put = recorded_put  # type: ignore[method-assign, assignment]
        ClusterState.remove = recorded_remove  # type: ignore[method-assign, assignment]

    def watch_the_preflight(self) -> None:
        for gate in ("take", "move"):
            setattr(Reserving, gate, self._recorded(gate, getattr(Reserving, gate)))
        look = PromisedRoom.look

        @wraps(look)
        def recorded_look(room: PromisedRoom) -> Refuse | None:
            refusal = look(room)
            if refusal is not None:
                self._refused("taken", "look", room._proposal, refusal)
            return refusal

        PromisedRoom.look = recorded_look  # type: ignore[method-assign, assignment]

    def _recorded(
        self, gate: str, ask_at: Callable[[Any, Proposal], Awaitable[Decision]]
    ) -> Callable[[Any, Proposal], Awaitable[Decision]]:
        @wraps(ask_at)
        async def recorded(asked: Any, proposal: Proposal) -> Decision:
            decision = await ask_at(asked, proposal)
            if isinstance(decision, Refuse):
                self._refused("refused", gate, proposal, decision)
            elif isinstance(decision, Start) and gate == "move":
                told = "unchecked" if decision.notes else "accepted"
                self._write(Line(told, proposal.name, proposal.grant.gpus))
            return decision

        return recorded

    def _refused(self, told: str, gate: str, proposal: Proposal, refusal: Refuse) -> None:
        saw = f"{gate}: {refusal.scheduler_message}; {_seen()}"
        name, gpus = proposal.name, proposal.grant.gpus
        self._write(Line(told, name, gpus, reason=refusal.reason.value, saw=saw))

    def _write(self, line: Line) -> None:
        self._file.write(json.dumps(asdict(line)) + "\n")


def _of_node(node: Node) -> Line:
    """Return what decides on a node about pods that ask for GPUs."""
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in node.spec.taints or ()
    ]
    gpus = int(str((node.status.allocatable or {}).get(GPU, 0)))
    cordoned = bool(node.spec.unschedulable)
    return Line("node", node.metadata.name, gpus, taints=taints, unschedulable=cordoned)


def _seen() -> str:
    """Return what a gate knows."""
    hub = runtime.running()
    view, promised = hub.view, hub.preflight.reservations
    promises = (*promised._left.items(), *promised._starts.items())
    phases = sorted(f"{name}: {it.phase.name}" for (_, name), it in promises if it.room)
    waiting, health = sorted(view.state.unbound_pods), view.health()
    return f"waiting: {waiting}, reservations: {phases}, {health}, in touch: {view.in_touch()}"


def _key(thing: Any) -> str:
    """Return a pod's key in the state; other objects' keys are never in it."""
    return f"{thing.metadata.namespace}/{thing.metadata.name}" if isinstance(thing, Pod) else ""


def _gpus(pod: Pod) -> int:
    resources = (pod.spec.containers or [])[0].resources
    return int(str((resources.requests or {}).get(GPU, 0))) if resources else 0
