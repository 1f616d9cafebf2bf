"""Running every pod that is bound to one of the agent's nodes."""

import asyncio
import logging

from localcluster.agent.addresses import Addresses
from localcluster.agent.api import Api, Change, ChangeKind, Object
from localcluster.agent.images import NodeImages
from localcluster.agent.node_states import NodeStates
from localcluster.agent.report import is_over
from localcluster.agent.runtime import Runtime
from localcluster.agent.worker import Machine, PodWorker

log = logging.getLogger(__name__)


async def run_pods(api: Api, runtime: Runtime, states: NodeStates) -> None:
    """Run bound pods until cancelled, then end what runs."""
    pods = Pods(Machine(api, runtime, states, NodeImages(api), Addresses()))
    try:
        # A pod without a node is the scheduler's task.
        async for change in api.follow("/api/v1/pods", {"fieldSelector": "spec.nodeName!="}):
            pods.see(change)
    finally:
        await pods.close()


class Pods:
    """A worker for each bound pod, by the pod's uid."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def see(self, change: Change) -> None:
        """Start, inform or end the worker of a pod that came, changed or went."""
        pod = change.object
        uid = pod["metadata"]["uid"]
        if change.kind is ChangeKind.GONE:
            self._workers.pop(uid, None)
            if task := self._tasks.get(uid):
                task.cancel()
        elif worker := self._workers.get(uid):
            worker.see(pod)
        else:
            worker = PodWorker(self._machine, pod, self._admitted)
            self._workers[uid] = worker
            task = asyncio.create_task(worker.run(), name=pod["metadata"]["name"])
            self._tasks[uid] = task
            task.add_done_callback(lambda done: self._ended(uid, done))

    def _admitted(self, node: str) -> list[Object]:
        """Return the pods of a node that were admitted and haven't ended."""
        pods = [worker.report.pod for worker in self._workers.values() if worker.is_admitted]
        return [pod for pod in pods if pod["spec"]["nodeName"] == node and not is_over(pod)]

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        del self._tasks[uid]
        if not task.cancelled() and (error := task.exception()):
            log.error("pod %s: the agent failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """End every container immediately, since the cluster ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
