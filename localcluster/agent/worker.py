"""Runs one pod, from its binding to its deletion."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from localcluster.agent import admission, eviction
from localcluster.agent.addresses import Addresses
from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.containers import ContainerWorker, Start
from localcluster.agent.faults import Faults, faults_of
from localcluster.agent.images import NodeImages, Puller
from localcluster.agent.node_states import NodeStates
from localcluster.agent.nodes import is_kept
from localcluster.agent.pressure import Shortage
from localcluster.agent.report import PodReport, is_over
from localcluster.agent.runtime import Runtime, Sandbox
from localcluster.agent.volumes import Volumes

_UNLIMITED_GRACE = 30


@dataclass(frozen=True)
class Machine:
    """What all pods share."""

    api: Api
    runtime: Runtime
    states: NodeStates
    images: NodeImages
    addresses: Addresses


class PodWorker:
    """Runs one pod's containers and reports on them, as a kubelet does.

    Args:
        machine: what all pods share.
        pod: the pod.
        neighbours: returns the pods of a node that were admitted and that haven't ended.
    """

    def __init__(
        self, machine: Machine, pod: Object, neighbours: Callable[[str], list[Object]]
    ) -> None:
        self.report = PodReport(machine.api, pod, machine.states)
        self.is_admitted = False
        self._machine = machine
        self._neighbours = neighbours
        self._containers: dict[str, ContainerWorker] = {}
        self.see(pod)

    def see(self, pod: Object) -> None:
        """Remember the pod as it is now."""
        self.report.see(pod)

    async def run(self) -> None:
        """Run the pod to its end; when cancelled, kill it."""
        if is_over(self.report.pod):
            return
        node = await self._node()
        if not node:
            return
        if not await self._admit(node):
            # The API server itself removes a pod that it knows has failed.
            await self.report.deleted.wait()
            await self.report.delete()
            return
        pod = self.report.pod
        address = pod["status"].get("podIP") or self._machine.addresses.take()
        sandbox = self._machine.runtime.sandbox(pod, node, address)
        try:
            await self._until_deleted(sandbox, address)
            if await self._node():
                await self._stop_all()
                await self.report.delete()
        finally:
            await sandbox.close()
            self._machine.addresses.give_back(address)

    async def _node(self) -> Object | None:
        """Wait until the pod's node is alive and return it; None if it isn't the agent's."""
        while True:
            try:
                name = self.report.pod["spec"]["nodeName"]
                node = await self._machine.api.get(f"/api/v1/nodes/{name}")
            except ApiError:
                return None
            if is_kept(node):
                return node
            if "annotations" not in node["metadata"]:
                return None
            await asyncio.sleep(1)

    async def _admit(self, node: Object) -> bool:
        """Refuse the pod if its node can't run it; return whether it may run."""
        pod, name = self.report.pod, node["metadata"]["name"]
        # A pod that runs, or that shall end, is not asked again.
        if "startTime" in pod["status"] or self.report.deleted.is_set():
            self.is_admitted = True
            return True
        short = self._machine.states.short_of(name)
        pressures = [shortage.pressure.condition for shortage in short]
        device_error = faults_of(pod).device_error
        refused = admission.rejection(pod, node, self._neighbours(name), device_error, pressures)
        if refused:
            await self.report.reject(refused.reason, refused.message)
        self.is_admitted = not refused
        return self.is_admitted

    async def _until_deleted(self, sandbox: Sandbox, address: str) -> None:
        pod = self.report.pod
        faults = faults_of(pod)
        life = asyncio.create_task(self._live(sandbox, address, faults))
        deleted = asyncio.create_task(self.report.deleted.wait())
        pressure = asyncio.create_task(self._machine.states.wait_short(pod["spec"]["nodeName"]))
        waited = {life, deleted} if admission.is_critical(pod) else {life, deleted, pressure}
        try:
            done, _ = await asyncio.wait(
                waited, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                await self._end_at_deadline(life)
            elif pressure in done and not deleted.done():
                await self._evict(life, pressure.result(), faults)
            elif life.done():
                # Raise an error of the pod; a pod that has ended waits for its deletion.
                life.result()
            await deleted
        finally:
            tasks = (life, deleted, pressure)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _left(self) -> float | None:
        """How many seconds the pod may still run; None without a deadline."""
        pod = self.report.pod
        seconds: float | None = pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        since = pod["status"].get("startTime")
        began = datetime.fromisoformat(since) if since else self.report.started
        passed = (datetime.now(UTC) - began).total_seconds()
        return max(0.0, seconds - passed)

    async def _end_at_deadline(self, life: asyncio.Task[None]) -> None:
        """End the pod's containers, and say why as a kubelet does (active_deadline.go, v1.36)."""
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        message = "Pod was active on the node longer than the specified deadline"
        self.report.end = {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}
        await self.report.events.normal("DeadlineExceeded", message)
        await self._stop_all()

    async def _evict(self, life: asyncio.Task[None], shortage: Shortage, faults: Faults) -> None:
        """End a pod that hasn't ended, because its node is short of something."""
        if is_over(self.report.pod):
            return
        running = [name for name, container in self._containers.items() if container.running]
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        message = eviction.message(self.report.pod, shortage, faults.uses, running)
        await self.report.events.warning(eviction.REASON, message)
        self.report.end = eviction.end(message)
        await self._stop_all(eviction.GRACE)

    async def _live(self, sandbox: Sandbox, address: str, faults: Faults) -> None:
        pod, machine = self.report.pod, self._machine
        volumes = Volumes(machine.api, pod, self.report.events, faults)
        if volumes.takes_time():
            await self.report.write()
        await volumes.set_up()
        self.report.ip = address
        if faults.start_after:
            await self.report.write()
            await asyncio.sleep(faults.start_after)
        node = pod["spec"]["nodeName"]
        puller = Puller(machine.images, self.report.events, faults, node, self.report.write)
        async with asyncio.TaskGroup() as running:
            for container in pod["spec"].get("initContainers", []):
                if container.get("restartPolicy") == "Always":
                    running.create_task(self._run(puller, faults, container, sandbox.start))
                elif await self._run(
                    puller, faults.of_init_containers(), container, sandbox.start_init
                ):
                    # It failed for good.
                    return
            for container in pod["spec"]["containers"]:
                running.create_task(self._run(puller, faults, container, sandbox.start))

    async def _run(
        self,
        puller: Puller,
        faults: Faults,
        container: Object,
        start: Start,
    ) -> int:
        """Run a container to its last end, and return its exit code."""
        worker = ContainerWorker(
            self._machine.api,
            self.report,
            puller,
            faults,
            container,
            start,
            self._policy(container),
        )
        self._containers[container["name"]] = worker
        return await worker.run()

    def _policy(self, container: Object) -> str:
        """Return the restartPolicy that holds for a container."""
        spec = self.report.pod["spec"]
        own, of_pod = container.get("restartPolicy"), str(spec["restartPolicy"])
        if own:
            return str(own)
        is_init = container in spec.get("initContainers", [])
        return "OnFailure" if is_init and of_pod == "Always" else of_pod

    async def _stop_all(self, grace: float | None = None) -> None:
        """End the containers, and write how they ended."""
        if grace is None:
            metadata = self.report.pod["metadata"]
            grace = float(metadata.get("deletionGracePeriodSeconds", _UNLIMITED_GRACE))
        workers = [*self._containers.items()]
        ends = await asyncio.gather(*(worker.stop(grace) for _, worker in workers))
        for (name, _), ended in zip(workers, ends, strict=True):
            if ended:
                old = self.report.containers[name]
                self.report.containers[name] = replace(old, state=ended)
        await self.report.write(final=True)
