"""What is told about one pod: its status, and its events."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.events import PodEvents
from localcluster.agent.node_states import NodeStates
from localcluster.agent.status import (
    INITIALIZING,
    Container,
    State,
    Terminated,
    Waiting,
    phase,
    pod_status,
    timestamp,
)

log = logging.getLogger(__name__)


class PodReport:
    """One pod as the agent sees it, written to the API server."""

    def __init__(self, api: Api, pod: Object, states: NodeStates) -> None:
        self.pod = pod
        self.events = PodEvents(api, pod, states)
        self.deleted = asyncio.Event()
        #: The pod's address, once its sandbox exists.
        self.ip = ""
        self.started = datetime.now(UTC)
        #: Fields of the status that overrule all others, once the kubelet has ended the pod.
        self.end: Object = {}
        self.containers = _containers(pod)
        self._rejected: Object = {}
        self._api = api
        self._states = states
        self._path = "/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"])
        self._writing = asyncio.Lock()

    def see(self, pod: Object) -> None:
        """Remember the pod as it is now."""
        self.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self.deleted.set()

    @property
    def label(self) -> str:
        """The pod in a kubelet's messages (format.Pod)."""
        return "{name}_{namespace}({uid})".format(**self.pod["metadata"])

    async def set(self, name: str, state: State, restarts: int | None = None) -> None:
        """Change a container's state and write the pod's status."""
        old = self.containers[name]
        last = old.state if isinstance(old.state, Terminated) else old.last
        self.containers[name] = replace(
            old, state=state, last=last, restarts=old.restarts if restarts is None else restarts
        )
        await self.write()

    async def write(self, *, final: bool = False) -> None:
        """Write the complete status; the pod may change or be deleted meanwhile."""
        async with self._writing:
            while True:
                await self._states.wait_alive(self.pod["spec"]["nodeName"])
                pod = self.pod
                status = self._rejected or self._status(final=final)
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

    async def reject(self, reason: str, message: str) -> None:
        """Fail the pod before it starts (rejectPod in pkg/kubelet/kubelet.go, v1.36.2).

        Its status has no containers, and none of the kubelet's conditions.
        """
        await self.events.warning(reason, message)
        self._rejected = {
            "phase": "Failed",
            "reason": reason,
            "message": f"Pod was rejected: {message}",
            "qosClass": self.pod["status"].get("qosClass"),
            "startTime": timestamp(self.started),
        }
        await self.write()

    async def delete(self) -> None:
        """Remove the pod from the API server."""
        preconditions = {"uid": self.pod["metadata"]["uid"]}
        options = {"gracePeriodSeconds": 0, "preconditions": preconditions}
        try:
            await self._api.delete(self._path, options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _status(self, *, final: bool) -> Object:
        spec = self.pod["spec"]
        inits = [self.containers[c["name"]] for c in spec.get("initContainers", [])]
        mains = [self.containers[c["name"]] for c in spec["containers"]]
        now = _final_phase(mains) if final else phase(mains, spec["restartPolicy"], inits)
        now = self.end.get("phase", now)
        old, ip, started = self.pod["status"], self.ip, self.started
        status = pod_status(old, mains, phase=now, ip=ip, started=started, init=inits)
        if condition := self.end.get("condition"):
            kept = [c for c in status["conditions"] if c["type"] != condition["type"]]
            status["conditions"] = [condition, *kept]
        return status | {key: text for key, text in self.end.items() if key != "condition"}

    async def _read_again(self) -> bool:
        """Read the pod; return whether it is still the one that this report is about."""
        try:
            pod = await self._api.get(self._path)
        except ApiError:
            return False
        if pod["metadata"]["uid"] != self.pod["metadata"]["uid"]:
            return False
        self.see(pod)
        return True


def is_over(pod: Object) -> bool:
    """Return whether a pod has ended."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _containers(pod: Object) -> dict[str, Container]:
    inits, mains = pod["spec"].get("initContainers", []), pod["spec"]["containers"]
    state = Waiting(INITIALIZING) if inits else Waiting()
    made = {
        each["name"]: Container(
            each["name"],
            each["image"],
            state,
            is_sidecar=each.get("restartPolicy") == "Always",
        )
        for each in inits
    }
    return made | {each["name"]: Container(each["name"], each["image"], state) for each in mains}


def _final_phase(containers: Sequence[Container]) -> str:
    """Return the phase of a pod that was deleted: no container starts again."""
    states = [container.state for container in containers]
    succeeded = all(isinstance(s, Terminated) and s.exit_code == 0 for s in states)
    return "Succeeded" if succeeded else "Failed"
