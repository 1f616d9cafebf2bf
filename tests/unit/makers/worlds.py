"""A cluster and a view that lags behind it, driven step by step without a network."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.following import Access
from gpuspawner.cluster.health import Health, Live
from gpuspawner.cluster.kinds import SCALING_KINDS
from gpuspawner.cluster.pod_events import PodEvents
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import convert
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.offers.vendors import HOSTNAME
from gpuspawner.preflight.decider import Decider
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.evaluate import evaluate
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Verdicts

NAMESPACE = "jhub"
GPU = "nvidia.com/gpu"
A100 = Accelerator("a100", "A100", GPU, counts=(1, 2, 4, 8), node_selector={"gpu": "a100"})
Plain = dict[str, object]
T = TypeVar("T")


async def _no_server() -> Configuration:
    raise AssertionError("these tests ask no API server")


class FedEvents(PodEvents):
    """Events that only a test tells."""

    async def _watch(self, namespace: str) -> None:  # noqa: ARG002
        await asyncio.Event().wait()

    def end(self, namespace: str) -> None:
        """As if the hub might not read them any more."""
        self._tell(namespace, is_heard=False)


class StillView(ClusterView):
    """A view whose state and health a test sets."""

    def __init__(self, *objects: tuple[str, Plain]) -> None:
        super().__init__(kinds=())
        for scaling in SCALING_KINDS:
            self.autoscalers.mark_known(scaling.name)
        self.events = FedEvents(Access(_no_server, Backoff(), self.wake))
        self.now: Health = Live(0.5)
        self.touch = True
        self.silent = 0.0
        self.state.mark_known("Node")
        self.state.mark_known("Pod")
        self.state.mark_known("PriorityClass")
        for kind, plain in objects:
            self.state.put(convert(kind, plain))

    def health(self) -> Health:
        return self.now

    def in_touch(self) -> bool:
        return self.touch

    def silent_for(self, kind: str) -> float:  # noqa: ARG002
        return self.silent

    def lost_contact(self) -> bool:
        return not self.touch

    def put(self, kind: str, plain: Plain) -> None:
        self.state.put(convert(kind, plain))
        self.wake()

    def remove_pod(self, name: str) -> None:
        self.state.remove("Pod", NAMESPACE, name)
        self.wake()


def no_promises() -> Reservations:
    """What a hub has promised that has just begun, in an empty cluster."""
    state = StillView().state
    return Reservations(state, Verdicts(state))


def node(name: str, gpus: int, **spec: object) -> Plain:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(gpus)}
    return {
        "metadata": {"name": name, "labels": {"gpu": "a100"}},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def labelled(plain: Plain, labels: Mapping[str, str]) -> Plain:
    """Return a node with more labels."""
    metadata: Any = plain["metadata"]
    return {**plain, "metadata": {**metadata, "labels": {**metadata["labels"], **labels}}}


def named_node(name: str, gpus: int) -> tuple[str, Plain]:
    """Return a node with its name as a label, as kubelets set it."""
    return "Node", labelled(node(name, gpus), {HOSTNAME: name})


def having(plain: Plain, *images: str) -> Plain:
    """Return a node with images."""
    status: Any = plain["status"]
    listed = [{"names": [name], "sizeBytes": 1} for name in images]
    return {**plain, "status": {**status, "images": listed}}


def pod(name: str, gpus: int = 1, on: str = "", **spec: object) -> Plain:
    requests = {GPU: str(gpus), "memory": "1Gi"} if gpus else {"memory": "1Gi"}
    container = {"name": "notebook", "resources": {"requests": requests, "limits": requests}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name},
        "spec": {
            "containers": [container],
            "nodeSelector": {"gpu": "a100"} if gpus else {},
            "nodeName": on,
            **spec,
        },
    }


_CLAIM = {
    "metadata": {
        "name": "claim-a",
        "namespace": NAMESPACE,
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
    },
    "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOncePod"]},
}
ALONE = ("PersistentVolumeClaim", _CLAIM), ("PersistentVolume", {"metadata": {"name": "disk"}})
"""A home that one pod can use at a time."""

ONE_FREE = [("Node", node("n", 2)), ("Pod", pod("x", 1, on="n"))]
"""A node with two GPUs, one of them in use."""


def preflight_on(*objects: tuple[str, Plain]) -> Preflight:
    return Preflight(StillView(*objects))


def decider_on(*objects: tuple[str, Plain]) -> Decider:
    return preflight_on(*objects).decider


def proposal(name: str, gpus: int = 1, **spec: Any) -> Proposal:
    grant = Grant(A100 if gpus else None, gpus)
    return Proposal(NAMESPACE, name, pod(name, gpus, **spec), grant)


def of_pool(name: str, gpus: int = 1, max_nodes: int = 2, **spec: Any) -> Proposal:
    """Return a proposal for the A100 in a pool of at most *max_nodes* nodes."""
    grant = Grant(replace(A100, scale_up=ScaleUp(max_nodes, 8)), gpus)
    return Proposal(NAMESPACE, name, pod(name, gpus, **spec), grant)


def refused(decision: Decision) -> Reason | None:
    """Return why a pod is refused; None if it isn't."""
    return decision.reason if isinstance(decision, Refuse) else None


def is_unknown(decision: Decision) -> bool:
    """Whether a pod starts because nobody can tell whether it has room."""
    return isinstance(decision, Start) and isinstance(decision.notes[0], UnknownRules)


class Instead:
    """Alternatives: any number of GPUs of a model on offer, or no GPU."""

    def __init__(self, offers: Offers) -> None:
        self.offers = offers

    def variant(self, request: GPURequest) -> tuple[Grant, Plain]:
        model = self.offers.accelerators.get(request.accelerator or "")
        return Grant(model, request.gpus), pod("a", request.gpus)


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(10):
        await asyncio.sleep(0)


async def waiting(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin something that can't end yet."""
    task = asyncio.create_task(coroutine)
    await settle()
    assert not task.done()
    return task


class World:
    """The true cluster with its scheduler, and the part of it that the view has seen so far."""

    def __init__(self, sizes: list[int]) -> None:
        nodes = [node(f"n{i}", gpus) for i, gpus in enumerate(sizes)]
        self.truth = ClusterState.from_objects(nodes=nodes, pods=[])
        self.view = StillView(*(("Node", plain) for plain in nodes))
        self._unseen: deque[Callable[[], None]] = deque()

    def create(self, name: str, gpus: int, on: str = "") -> None:
        plain = pod(name, gpus, on)
        self.truth.put(convert("Pod", plain))
        self._unseen.append(lambda: self.view.put("Pod", plain))

    def delete(self, name: str) -> None:
        self.truth.remove("Pod", NAMESPACE, name)
        self._unseen.append(lambda: self.view.remove_pod(name))

    def bindable(self) -> list[tuple[str, str]]:
        """Return every pod and node that the scheduler may bind next, under any scoring."""
        return [
            (waiting.metadata.name, name)
            for waiting in self.truth.unbound_pods.values()
            for name in evaluate(self.truth, waiting).feasible
        ]

    def bind(self, name: str, on: str) -> None:
        waiting = self.truth.unbound_pods[f"{NAMESPACE}/{name}"]
        requests = (waiting.spec.containers or [])[0].resources
        gpus = int(str((requests.requests or {}).get(GPU, 0))) if requests else 0
        self.create(name, gpus, on)

    def see(self, count: int | None = None) -> None:
        """Let the view see the next *count* events; None for all."""
        for _ in range(len(self._unseen) if count is None else min(count, len(self._unseen))):
            self._unseen.popleft()()

    def is_behind(self) -> bool:
        """Whether the view has not seen everything yet."""
        return bool(self._unseen)

    def is_bound(self, name: str) -> bool:
        return f"{NAMESPACE}/{name}" in self.truth.pods
