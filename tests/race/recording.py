"""Records the changes that a hub's view saw and its preflight's answers, in order, as JSON lines.

It runs inside the hub, whose configuration calls `into`. It writes each line in the same tick as
the change or answer, so the lines before a refusal are exactly the changes that it knew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from gpuspawner.kube.nodes import Node
from gpuspawner.kube.pods import Pod
from gpuspawner.preflight.decision import Decision, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.scheduling.state import ClusterState

GPU = "nvidia.com/gpu"


def into(path: str, namespace: str) -> None:
    """Record all changes of nodes and of the pods of *namespace* from now on."""
    recorder = Recorder(Path(path), namespace)
    recorder.watch_the_view()
    recorder.watch_the_preflight()


class Recorder:
    """Writes the lines.

    Args:
        path: The file to append to.
        namespace: The namespace whose pods to record.
    """

    def __init__(self, path: Path, namespace: str) -> None:
        self._file = path.open("a", buffering=1)
        self._namespace = namespace
        self._looking: asyncio.Task[None] | None = None

    def watch_the_view(self) -> None:
        put, remove = ClusterState.put, ClusterState.remove

        @wraps(put)
        def recorded_put(state: ClusterState, thing: Any) -> None:
            was_bound = _key(thing) in state.pods
            put(state, thing)
            if isinstance(thing, Node):
                self._write("node", thing.metadata.name, **_room(thing))
            if isinstance(thing, Pod) and thing.metadata.namespace == self._namespace:
                name = thing.metadata.name
                if _key(thing) in state.pods:
                    self._write("bound", name, node=thing.spec.node_name, gpus=_gpus(thing))
                elif was_bound or _key(thing) not in state.unbound_pods:
                    self._write("gone", name)

        @wraps(remove)
        def recorded_remove(state: ClusterState, kind: str, namespace: str, name: str) -> None:
            remove(state, kind, namespace, name)
            if kind == "Node":
                self._write("node-gone", name)
            if (kind, namespace) == ("Pod", self._namespace):
                self._write("gone", name)

        ClusterState.put = recorded_put  # type: ignore[method-assign, assignment]
        ClusterState.remove = recorded_remove  # type: ignore[method-assign, assignment]

    def watch_the_preflight(self) -> None:
        for gate in ("begin", "confirm", "until_taken"):
            setattr(Preflight, gate, self._recorded(gate, getattr(Preflight, gate)))

    def _recorded(
        self, gate: str, ask_at: Callable[[Preflight, Proposal], Awaitable[Decision]]
    ) -> Callable[[Preflight, Proposal], Awaitable[Decision]]:
        @wraps(ask_at)
        async def recorded(preflight: Preflight, proposal: Proposal) -> Decision:
            self._begin_looking(preflight)
            decision = await ask_at(preflight, proposal)
            if isinstance(decision, Refuse):
                told = "taken" if gate == "until_taken" else "refused"
                facts = {"reason": decision.reason.value, "saw": _saw(preflight)}
                facts["message"] = decision.scheduler_message
                self._write(told, proposal.name, gpus=proposal.grant.gpus, gate=gate, **facts)
            elif isinstance(decision, Start) and gate == "confirm":
                told = "unchecked" if decision.notes else "accepted"
                self._write(told, proposal.name, gpus=proposal.grant.gpus)
            return decision

        return recorded

    def _begin_looking(self, preflight: Preflight) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(preflight))

    async def _look(self, preflight: Preflight) -> None:
        """Write the number of reservations at intervals."""
        while True:
            self._write("reservations", "", gpus=len(preflight.reservations))
            await asyncio.sleep(0.2)

    def _write(self, what: str, name: str, **more: object) -> None:
        self._file.write(json.dumps({"what": what, "name": name, **more}) + "\n")


def _room(node: Node) -> dict[str, object]:
    """Return what decides on a node about pods that ask for GPUs."""
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in node.spec.taints or ()
    ]
    gpus = int(str((node.status.allocatable or {}).get(GPU, 0)))
    return {"gpus": gpus, "taints": taints, "unschedulable": node.spec.unschedulable}


def _saw(preflight: Preflight) -> dict[str, object]:
    """Return what a gate knew when it decided, for debugging."""
    view = preflight._view
    return {
        "free": {name: node.free.get(GPU, 0) for name, node in sorted(view.state.nodes.items())},
        "waiting": sorted(view.state.unbound_pods),
        "reservations": sorted(
            f"{name}: {reservation.phase.name}"
            for (_, name), reservation in _reservations(preflight)
        ),
        "health": str(view.health()),
        "in touch": view.in_touch(),
    }


def _reservations(preflight: Preflight) -> list[Any]:
    return list(preflight.reservations._reservations.items())


def _key(thing: Any) -> str:
    """Return a pod's key in the state; other objects' keys are never in it."""
    return f"{thing.metadata.namespace}/{thing.metadata.name}" if isinstance(thing, Pod) else ""


def _gpus(pod: Pod) -> int:
    resources = (pod.spec.containers or [])[0].resources
    return int(str((resources.requests or {}).get(GPU, 0))) if resources else 0
