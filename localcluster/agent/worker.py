"""Runs one pod, from its binding to its deletion."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from localcluster.agent.addresses import Addresses
from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.events import record
from localcluster.agent.nodes import is_kept
from localcluster.agent.runtime import Running as RunningContainer
from localcluster.agent.runtime import Runtime, Sandbox, StartError
from localcluster.agent.status import (
    Container,
    Running,
    State,
    Terminated,
    Waiting,
    phase,
    pod_status,
)

log = logging.getLogger(__name__)

#: A pod's annotation: how long its containers take to be created, in seconds.
START_AFTER = "localcluster/start-after"

_START_ERROR = 128
_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 300.0
_RAN_WELL = timedelta(minutes=10)


class PodWorker:
    """Runs one pod's containers and reports on them, as a kubelet does."""

    def __init__(self, api: Api, runtime: Runtime, addresses: Addresses, pod: Object) -> None:
        self._api = api
        self._runtime = runtime
        self._addresses = addresses
        self._pod = pod
        self._path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
        self._started = datetime.now(UTC)
        self._ip = ""
        self._containers = {c["name"]: Container(c["name"], c["image"]) for c in _main(pod)}
        self._running: dict[str, RunningContainer] = {}
        self._end: Object = {}
        self._writing = asyncio.Lock()
        self._deleted = asyncio.Event()
        self.see(pod)

    def see(self, pod: Object) -> None:
        """Remember the pod as it is now."""
        self._pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._deleted.set()

    async def run(self) -> None:
        """Run the pod to its end; when cancelled, kill it."""
        if _is_over(self._pod):
            return
        node = await self._node()
        if not node:
            return
        self._ip = self._pod["status"].get("podIP") or self._addresses.take()
        sandbox = self._runtime.sandbox(self._pod, node, self._ip)
        try:
            await self._until_deleted(sandbox)
            if await self._node():
                await self._terminate()
        finally:
            await sandbox.close()
            self._addresses.give_back(self._ip)

    async def _node(self) -> Object | None:
        """Wait until the pod's node is alive and return it; None if it isn't the agent's."""
        while True:
            try:
                node = await self._api.get(f"/api/v1/nodes/{self._pod['spec']['nodeName']}")
            except ApiError:
                return None
            if is_kept(node):
                return node
            if "annotations" not in node["metadata"]:
                return None
            await asyncio.sleep(1)

    async def _until_deleted(self, sandbox: Sandbox) -> None:
        life = asyncio.create_task(self._live(sandbox))
        deleted = asyncio.create_task(self._deleted.wait())
        try:
            done, _ = await asyncio.wait(
                [life, deleted], timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                await self._end_at_deadline(life)
                await deleted
            elif life.done():
                # Raise an error of the pod; a pod that has ended waits for its deletion.
                life.result()
                await deleted
        finally:
            life.cancel()
            deleted.cancel()
            await asyncio.gather(life, deleted, return_exceptions=True)

    def _left(self) -> float | None:
        """How many seconds the pod may still run; None without a deadline."""
        seconds: float | None = self._pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        since = self._pod["status"].get("startTime")
        began = datetime.fromisoformat(since) if since else self._started
        passed = (datetime.now(UTC) - began).total_seconds()
        return max(0.0, seconds - passed)

    async def _end_at_deadline(self, life: asyncio.Task[None]) -> None:
        """End the pod's containers, and say why as a kubelet does (active_deadline.go, v1.36)."""
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        message = "Pod was active on the node longer than the specified deadline"
        self._end = {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}
        await self._event("DeadlineExceeded", message)
        await self._stop_all()

    async def _live(self, sandbox: Sandbox) -> None:
        if delay := self._pod["metadata"].get("annotations", {}).get(START_AFTER):
            await self._write()
            await asyncio.sleep(float(delay))
        for container in _init(self._pod):
            await self._initialize(sandbox, container)
        async with asyncio.TaskGroup() as containers:
            for container in _main(self._pod):
                containers.create_task(self._keep_running(sandbox, container))

    async def _initialize(self, sandbox: Sandbox, container: Object) -> None:
        """Run an init container until it succeeds, with the kubelet's back-off."""
        for attempt in range(1, 1000):
            try:
                code = await sandbox.run_to_end(container)
            except StartError as error:
                await self._event("Failed", f"Error: {error}", "Warning")
                code = _START_ERROR
            if code == 0:
                return
            message = f"Back-off restarting failed container {container['name']}"
            await self._event("BackOff", message, "Warning")
            await asyncio.sleep(_backoff(attempt))

    async def _keep_running(self, sandbox: Sandbox, container: Object) -> None:
        """Start a container, and restart it when it ends if the pod's restartPolicy says so."""
        name, policy = container["name"], self._pod["spec"]["restartPolicy"]
        failures = 0
        while True:
            ended = await self._run_once(sandbox, container)
            restarts = policy == "Always" or (policy == "OnFailure" and ended.exit_code != 0)
            await self._set(name, ended)
            if not restarts:
                return
            failures = 0 if ended.until - ended.since > _RAN_WELL else failures + 1
            if failures > 1:
                message = f"Back-off restarting failed container {name}"
                await self._set(name, Waiting("CrashLoopBackOff", message))
                await self._event("BackOff", message, "Warning")
                await asyncio.sleep(_backoff(failures - 1))
            self._containers[name] = replace(
                self._containers[name], restarts=self._containers[name].restarts + 1
            )

    async def _run_once(self, sandbox: Sandbox, container: Object) -> Terminated:
        name, since = container["name"], datetime.now(UTC)
        try:
            running = await sandbox.start(container)
        except StartError as error:
            await self._event("Failed", f"Error: {error}", "Warning")
            now = datetime.now(UTC)
            return Terminated(_START_ERROR, since, now, "StartError", str(error))
        self._running[name] = running
        await self._set(name, Running(since))
        image = f'Container image "{container["image"]}" already present on machine'
        await self._event("Pulled", image)
        await self._event("Created", f"Created container: {name}")
        await self._event("Started", f"Started container {name}")
        code = await running.wait()
        del self._running[name]
        return Terminated(code, since, datetime.now(UTC))

    async def _terminate(self) -> None:
        """End the containers, write how they ended, and remove the pod from the API server."""
        metadata = self._pod["metadata"]
        await self._stop_all()
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        try:
            await self._api.delete(self._path, options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def _stop_all(self) -> None:
        """End the containers, and write how they ended."""
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds", 30)
        await asyncio.gather(*(self._stop(name, grace) for name in list(self._running)))
        await self._write(final=True)

    async def _stop(self, name: str, grace: float) -> None:
        record = self._containers[name]
        since = record.state.since if isinstance(record.state, Running) else self._started
        announced = asyncio.create_task(self._event("Killing", f"Stopping container {name}"))
        code = await self._running[name].stop(grace)
        await announced
        self._containers[name] = replace(record, state=Terminated(code, since, datetime.now(UTC)))

    async def _set(self, name: str, state: State) -> None:
        """Change a container's state and write the pod's status."""
        old = self._containers[name]
        last = old.state if isinstance(old.state, Terminated) else old.last
        self._containers[name] = replace(old, state=state, last=last)
        await self._write()

    async def _write(self, *, final: bool = False) -> None:
        """Write the complete status; the pod may change or be deleted meanwhile."""
        async with self._writing:
            while True:
                pod, containers = self._pod, list(self._containers.values())
                policy = "Never" if final else pod["spec"]["restartPolicy"]
                status = pod_status(
                    pod["status"],
                    containers,
                    phase=_final_phase(containers) if final else phase(containers, policy),
                    ip=self._ip,
                    started=self._started,
                )
                status |= self._end
                try:
                    written = await self._api.replace(
                        f"{self._path}/status", {**pod, "status": status}
                    )
                except ApiError as error:
                    if error.status not in (404, 409):
                        log.warning("status of %s: %s", self._path, error)
                    if error.status != 409 or not await self._read_again():
                        return
                else:
                    self.see(written)
                    return

    async def _read_again(self) -> bool:
        """Read the pod; return whether it is still the one that this worker runs."""
        try:
            pod = await self._api.get(self._path)
        except ApiError:
            return False
        if pod["metadata"]["uid"] != self._pod["metadata"]["uid"]:
            return False
        self.see(pod)
        return True

    async def _event(self, reason: str, message: str, kind: str = "Normal") -> None:
        await record(self._api, self._pod, reason, message, kind)


def _is_over(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _init(pod: Object) -> list[Object]:
    """Return the init containers that must end before the others start."""
    return [c for c in pod["spec"].get("initContainers", []) if c.get("restartPolicy") != "Always"]


def _main(pod: Object) -> list[Object]:
    """Return the containers that run side by side, sidecars first."""
    sidecars = [c for c in pod["spec"].get("initContainers", []) if c not in _init(pod)]
    return [*sidecars, *pod["spec"]["containers"]]


def _final_phase(containers: Sequence[Container]) -> str:
    """Return the phase of a pod that was deleted: no container starts again."""
    states = [container.state for container in containers]
    succeeded = all(isinstance(s, Terminated) and s.exit_code == 0 for s in states)
    return "Succeeded" if succeeded else "Failed"


def _backoff(failures: int) -> float:
    return min(_FIRST_BACKOFF * 2.0 ** (failures - 1), _LONGEST_BACKOFF)
