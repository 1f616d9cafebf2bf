"""Runs one container of a pod, and starts it again as its kubelet would.

startContainer, doBackOff and computePodActions in pkg/kubelet/kuberuntime (v1.36.2).
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from localcluster.agent import crashes, termination
from localcluster.agent.api import Api, Object
from localcluster.agent.backoff import Backoff, first_backoff, go_duration
from localcluster.agent.configuration import with_variables
from localcluster.agent.faults import Faults
from localcluster.agent.images import Puller
from localcluster.agent.report import PodReport
from localcluster.agent.runtime import Exit, Reported, StartError
from localcluster.agent.runtime import Running as RunningContainer
from localcluster.agent.starting import NotStartedError
from localcluster.agent.status import Running, Terminated, Waiting

_START_ERROR = 128
_RAN_WELL = timedelta(minutes=10)
#: containerd gives a container that never ran this time as its start.
_NEVER = datetime.fromtimestamp(0, UTC)

Start = Callable[[Object], Awaitable[RunningContainer]]


class ContainerWorker:
    """One container, from its first start to its last end.

    Args:
        api: to read what it refers to.
        report: its pod.
        puller: pulls its image.
        faults: what shall go wrong.
        container: its specification.
        start: starts it.
        policy: the restartPolicy that holds for it.
    """

    def __init__(
        self,
        api: Api,
        report: PodReport,
        puller: Puller,
        faults: Faults,
        container: Object,
        start: Start,
        policy: str,
    ) -> None:
        self._api = api
        self._report = report
        self._puller = puller
        self._faults = faults
        self._container = container
        self._start = start
        self._policy = policy
        self._name = container["name"]
        self._created = 0
        self.running: RunningContainer | None = None

    async def run(self) -> int:
        """Run it, and again after each end if its policy says so; return the last exit code."""
        backoff, failures = Backoff(), 0
        while True:
            ended = await self._run_once()
            is_last = self._policy == "Never" or (
                self._policy == "OnFailure" and ended.exit_code == 0
            )
            await self._report.set(self._name, ended)
            if is_last:
                return ended.exit_code
            if ended.reason == "StartError":
                waiting = Waiting("RunContainerError", ended.message)
                await self._report.set(self._name, waiting)
            if ended.until - ended.since > _RAN_WELL and ended.since != _NEVER:
                backoff, failures = Backoff(), 0
            failures += 1
            # The first restart is immediate.
            if failures > 1:
                await self._back_off(backoff.next())

    async def stop(self, grace: float) -> Terminated | None:
        """End it if it runs, and return how it ended."""
        running, self.running = self.running, None
        if not running:
            return None
        state = self._report.containers[self._name].state
        since = state.since if isinstance(state, Running) else self._report.started
        announced = asyncio.create_task(
            self._report.events.normal("Killing", f"Stopping container {self._name}", self._name)
        )
        ended = await running.stop(grace)
        await announced
        return self._terminated(ended, since)

    async def _run_once(self) -> Terminated:
        """Start it, however often that has to be tried, and wait until it ends."""
        while True:
            try:
                running = await self._create_and_start()
                break
            except NotStartedError as error:
                text = f"Error: {error.said}"
                await self._report.events.warning("Failed", text, self._name)
                await self._report.set(self._name, Waiting(error.reason, error.message))
                await asyncio.sleep(min(error.retry_in, first_backoff()))
            except StartError as error:
                await self._report.events.warning("Failed", f"Error: {error}", self._name)
                until = datetime.now(UTC)
                return Terminated(_START_ERROR, _NEVER, until, "StartError", str(error))
        self.running, since = running, datetime.now(UTC)
        await self._report.events.normal("Started", "Container started", self._name)
        await self._report.set(self._name, Running(since), restarts=self._created - 1)
        ended = await running.wait()
        self.running = None
        return self._terminated(ended, since)

    async def _create_and_start(self) -> RunningContainer:
        await self._puller.ensure(self._container)
        namespace = self._report.pod["metadata"]["namespace"]
        container = await with_variables(self._api, namespace, self._container)
        if message := self._faults.create_error:
            raise NotStartedError("CreateContainerError", message)
        # Earlier versions name it: "Created container: NAME" and "Started container NAME".
        await self._report.events.normal("Created", "Container created", self._name)
        self._created += 1
        if message := self._faults.run_error:
            raise StartError(message)
        running = Reported() if self._faults.hangs else await self._start(container)
        return crashes.doomed(running, self._faults, self._created - 1)

    def _terminated(self, ended: Exit, since: datetime) -> Terminated:
        message = termination.message(self._container, ended)
        return Terminated(ended.code, since, datetime.now(UTC), ended.reason, message)

    async def _back_off(self, seconds: float) -> None:
        """Wait before the next start, and say so."""
        message = (
            f"back-off {go_duration(seconds)} restarting failed container={self._name} "
            f"pod={self._report.label}"
        )
        event = f"Back-off restarting failed container {self._name} in pod {self._report.label}"
        await self._report.events.warning("BackOff", event, self._name)
        await self._report.set(self._name, Waiting("CrashLoopBackOff", message))
        await asyncio.sleep(seconds)
