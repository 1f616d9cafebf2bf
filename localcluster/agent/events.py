"""The events that a kubelet writes about a pod."""

from datetime import UTC, datetime

from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.node_states import NodeStates
from localcluster.events import event_about

ATTACH_DETACH = "attachdetach-controller"

_KUBELET = "kubelet"
_Key = tuple[str, str, str, str]


class PodEvents:
    """Writes events about one pod, and counts those that happen again.

    Like a real recorder, it changes ``count`` and ``lastTimestamp`` of an equal event instead of
    writing another (client-go v0.36.2, tools/record/events_cache.go).
    """

    def __init__(self, api: Api, pod: Object, states: NodeStates) -> None:
        self._api = api
        self._pod = pod
        self._states = states
        self._node = pod["spec"]["nodeName"]
        self._path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/events"
        self._written: dict[_Key, Object] = {}

    async def normal(self, reason: str, message: str, container: str = "") -> None:
        """Write that something went as it should, maybe with one container."""
        await self._record(reason, message, "Normal", container, self._kubelet())

    async def warning(self, reason: str, message: str, container: str = "") -> None:
        """Write that something went wrong, maybe with one container."""
        await self._record(reason, message, "Warning", container, self._kubelet())

    async def of_controller(self, reason: str, message: str, kind: str) -> None:
        """Write what the controller that attaches volumes says."""
        await self._record(reason, message, kind, "", {"component": ATTACH_DETACH})

    def _kubelet(self) -> dict[str, str]:
        return {"component": _KUBELET, "host": self._node}

    async def _record(
        self, reason: str, message: str, kind: str, container: str, source: dict[str, str]
    ) -> None:
        if source["component"] == _KUBELET:
            await self._states.wait_alive(self._node)
        key = (reason, message, container, source["component"])
        try:
            if key in self._written:
                self._written[key] = await self._count(self._written[key])
                return
            event = event_about("Pod", self._pod["metadata"], source, reason, message, kind)
            event["reportingInstance"] = source.get("host", "")
            if container:
                event["involvedObject"]["fieldPath"] = self._field_path(container)
            self._written[key] = await self._api.create(self._path, event)
        except ApiError as error:
            # A namespace that is going away takes no new events; an old event may have expired.
            if error.status not in (403, 404):
                raise

    async def _count(self, event: Object) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        again = {"count": event["count"] + 1, "lastTimestamp": now}
        return await self._api.patch(f"{self._path}/{event['metadata']['name']}", again)

    def _field_path(self, container: str) -> str:
        is_init = any(c["name"] == container for c in self._pod["spec"].get("initContainers", []))
        return f"spec.{'initContainers' if is_init else 'containers'}{{{container}}}"
