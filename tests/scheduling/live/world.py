"""Loads generated clusters into a real control plane, and reads its scheduler's answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.scheduling.generators.case import NAMESPACES, PRIORITIES, RUNTIME_CLASSES, Case
from tests.scheduling.live.api import NAMESPACED, Api, Plain, RefusedError, Seen
from tests.scheduling.live.binder import WAITING_FOR_CLAIM, Binder, ephemeral_claims

# In the order of creation; the pods come last.
LOADED = (
    "storageclasses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "persistentvolumes",
    "persistentvolumeclaims",
    "volumeattachments",
    "nodes",
    "pods",
)
LISTED = (*LOADED, "namespaces", "deviceclasses")
KEPT_BY_GRACE = 3600  # seconds that a deleted pod stays, because no kubelet removes it
PROVISIONED_LATE = 1.5  # seconds without an answer after which the scheduler waits for a volume


@dataclass(frozen=True)
class Answer:
    """The scheduler's answer for a pod.

    Attributes:
        node: The node to which it bound the pod, or None.
        nominated: The node that the pod waits for after preemption, or None.
        reason: The reason in the PodScheduled condition.
        message: The whole message of that condition; empty if the pod is bound.
    """

    node: str | None = None
    nominated: str | None = None
    reason: str = ""
    message: str = ""


def answer_in(pod: Plain) -> Answer | None:
    """Return the scheduler's answer from a pod; None if there is none yet."""
    if node := pod["spec"].get("nodeName"):
        return Answer(node=node)
    status = pod.get("status", {})
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            if WAITING_FOR_CLAIM in condition.get("message", ""):
                return None
            return Answer(
                nominated=status.get("nominatedNodeName") or None,
                reason=condition.get("reason", ""),
                message=condition.get("message", ""),
            )
    return None


class World:
    """Loads one cluster after another into a control plane.

    Nothing else may use that control plane: `clear` deletes every node, pod and volume.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self._pods = Seen()
        self._binder = Binder(api)

    @classmethod
    @asynccontextmanager
    async def open(cls, api: Api) -> AsyncIterator[World]:
        """Create the objects that all cases share, then follow pods and bind volumes."""
        world = cls(api)
        await asyncio.gather(*(_ensure(api, *each) for each in _shared()))
        await world.clear()
        tasks = [
            asyncio.create_task(world._pods.follow(api, "pods")),
            asyncio.create_task(world._binder.run()),
        ]
        try:
            yield world
        finally:
            for task in tasks:
                task.cancel()
            for done in await asyncio.gather(*tasks, return_exceptions=True):
                if done and not isinstance(done, asyncio.CancelledError):
                    raise done

    async def load(self, case: Case) -> None:
        """Create a case's objects, and wait until the scheduler has seen all of them."""
        for plural in LOADED:
            await asyncio.gather(
                *(self._load_one(plural, each) for each in case.objects.get(plural, []))
            )
        await self._wait_for_the_scheduler(f"{case.name}-last")
        for each in case.earlier:
            made = await self.api.create("pods", each)
            await self.answer(each)
            if status := each.get("status"):
                await self.api.patch(f"{self.api.path_of('pods', made)}/status", {"status": status})

    async def fill(self, nodes: list[Plain]) -> None:
        """Create nodes, even thousands, and wait until the scheduler has seen all of them."""
        await asyncio.gather(*(self._load_one("nodes", each) for each in nodes))
        await self._wait_for_the_scheduler("last")

    async def _load_one(self, plural: str, wanted: Plain) -> None:
        metadata = {k: v for k, v in wanted["metadata"].items() if k != "deletionTimestamp"}
        made = await self.api.create(plural, wanted | {"metadata": metadata})
        url = self.api.path_of(plural, made)
        if plural == "nodes":  # remove the not-ready taint of the API server, since no kubelet does
            await self.api.patch(url, {"spec": {"taints": wanted["spec"].get("taints")}})
        elif status := wanted.get("status"):
            await self.api.patch(f"{url}/status", {"status": status})
        if "deletionTimestamp" in wanted["metadata"]:
            await self.api.delete(url, KEPT_BY_GRACE if plural == "pods" else None)

    async def _wait_for_the_scheduler(self, name: str) -> None:
        """Wait until a last pod is bound to a last node, so that all watches have caught up."""
        node = {
            "metadata": {"name": name, "labels": {"last": name}},
            "status": {"allocatable": {"pods": "1"}},
        }
        taints = [{"key": "last", "effect": "NoSchedule"}]
        await self._load_one("nodes", node | {"spec": {"taints": taints}})
        pod = {
            "metadata": {"name": name, "namespace": "hub"},
            "spec": {
                "nodeSelector": {"last": name},
                "tolerations": [{"key": "last", "operator": "Exists"}],
                "containers": [{"name": "main", "image": "i"}],
            },
        }
        await self.api.create("pods", pod)
        await self._pods.until(lambda: (a := self._answer(pod)) and a.node, seconds=60)

    async def listed(self) -> dict[str, list[Plain]]:
        """Return all objects of the kinds that scheduling reads, by plural."""
        found = await asyncio.gather(*(self.api.items(plural) for plural in LISTED))
        return dict(zip(LISTED, found, strict=True))

    async def admitted(self, pod: Plain) -> Plain:
        """Return the pod after admission, from a dry run."""
        return await self.api.create("pods", pod, dryRun="All")

    async def schedule(self, pod: Plain) -> Answer:
        """Create the pod, and return the scheduler's answer."""
        made = await self.api.create("pods", pod)
        for claim in ephemeral_claims(made):
            await self.api.create("persistentvolumeclaims", claim)
        return await self.answer(pod)

    async def answer(self, pod: Plain) -> Answer:
        try:
            return await self._pods.until(lambda: self._answer(pod), PROVISIONED_LATE)
        except TimeoutError:
            await self._binder.provision_the_rest()
            return await self._pods.until(lambda: self._answer(pod))

    def _answer(self, pod: Plain) -> Answer | None:
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        seen = self._pods.objects.get(key)
        return answer_in(seen) if seen else None

    async def remove(self, pod: Plain) -> None:
        """Delete a pod immediately, and wait until it is gone."""
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        await self.api.delete(self.api.path_of("pods", pod))
        await self._pods.until(lambda: True if key not in self._pods.objects else None)

    async def clear(self) -> None:
        """Delete all objects of a case, pods first."""
        for plural in reversed(LOADED):
            places = NAMESPACES if plural in NAMESPACED else [None]
            await asyncio.gather(
                *(self.api.delete(self.api.path(plural, place)) for place in places)
            )
        for plural in ("persistentvolumeclaims", "persistentvolumes"):
            await asyncio.gather(
                *(self._let_go(plural, each) for each in await self.api.items(plural))
            )

    async def _let_go(self, plural: str, made: Plain) -> None:
        """Remove the finalizers, because the controller that removes them doesn't run."""
        await self.api.patch(self.api.path_of(plural, made), {"metadata": {"finalizers": None}})


def _shared() -> Iterable[tuple[str, Plain]]:
    for name, labels in NAMESPACES.items():
        yield "namespaces", {"metadata": {"name": name, "labels": labels}}
    for name, value in PRIORITIES.items():
        yield "priorityclasses", {"metadata": {"name": name}, "value": value}
    patient = {"metadata": {"name": "urgent-patient"}, "value": PRIORITIES["urgent"]}
    yield "priorityclasses", patient | {"preemptionPolicy": "Never"}
    kata, runtime = RUNTIME_CLASSES
    yield (
        "runtimeclasses",
        {
            "metadata": {"name": kata},
            "handler": kata,
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        },
    )
    yield (
        "runtimeclasses",
        {
            "metadata": {"name": runtime},
            "handler": "nvidia",
            "scheduling": {
                "nodeSelector": {"kubernetes.io/arch": "amd64"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
            },
        },
    )


async def _ensure(api: Api, plural: str, made: Plain) -> None:
    try:
        await api.create(plural, made)
    except RefusedError as refused:
        if refused.status != 409:
            raise
