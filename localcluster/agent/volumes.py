"""Attaching and mounting a pod's volumes, in the words of the real controller and kubelet.

pkg/controller/volume/attachdetach/reconciler/reconciler.go and
pkg/volume/util/operationexecutor/operation_generator.go (v1.36.2).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.backoff import Backoff, first_backoff
from localcluster.agent.configuration import missing
from localcluster.agent.events import PodEvents
from localcluster.agent.faults import Faults

_ATTACHED_ELSEWHERE = (
    "Volume is already exclusively attached to one node and can't be attached to another"
)
_SHARED_MODES = {"ReadWriteMany", "ReadOnlyMany"}
# exponentialbackoff.go: half a second at first, and at most two minutes and two seconds.
_FIRST_RETRY, _LONGEST_RETRY = 0.5, 122.0


class Volumes:
    """The volumes of one pod."""

    def __init__(self, api: Api, pod: Object, events: PodEvents, faults: Faults) -> None:
        self._api = api
        self._pod = pod
        self._events = events
        self._faults = faults
        self._namespace = pod["metadata"]["namespace"]
        self._began = time.monotonic()

    async def set_up(self) -> None:
        """Return when every volume is mounted, which may be never."""
        volumes = self._pod["spec"].get("volumes", [])
        claimed = [volume for volume in volumes if "persistentVolumeClaim" in volume]
        if self._attaches():
            await asyncio.gather(*(self._attach(volume) for volume in claimed))
        for volume in volumes:
            await self._mount(volume, self._missing)
        # The annotation speaks of the volume that matters most: the one with a claim.
        if self._faults.mount_error and volumes:
            await self._mount((claimed or volumes)[0], self._mount_error)

    def takes_time(self) -> bool:
        """Return whether setting up may take longer than a moment."""
        kinds = ("secret", "configMap")
        has_objects = any(kind in v for v in self._pod["spec"].get("volumes", []) for kind in kinds)
        return has_objects or self._attaches() or bool(self._faults.mount_error)

    def _attaches(self) -> bool:
        faults = self._faults
        asked = faults.attach_seconds is not None or faults.attached_elsewhere_seconds
        return bool(asked or faults.attach_error)

    def _passed(self) -> float:
        return time.monotonic() - self._began

    async def _name(self, volume: Object) -> str:
        """Return the name of a volume in messages: the PersistentVolume's if it has one."""
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if not claim:
            return str(volume["name"])
        found = await self._claim(claim)
        return str(found.get("spec", {}).get("volumeName") or volume["name"])

    async def _claim(self, name: str) -> Object:
        path = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims/{name}"
        try:
            return await self._api.get(path)
        except ApiError:
            return {}

    async def _attach(self, volume: Object) -> None:
        """Wait until no other node has the volume, and then until it is attached here."""
        name, is_told = await self._name(volume), False
        while conflict := await self._conflict(volume["persistentVolumeClaim"]["claimName"]):
            # The controller says it once per volume (MultiAttachErrorReported).
            if not is_told:
                message = f'Multi-Attach error for volume "{name}" {conflict}'
                await self._events.of_controller("FailedAttachVolume", message, "Warning")
                is_told = True
            await asyncio.sleep(min(1.0, first_backoff()))
        retry = Backoff(_LONGEST_RETRY, _FIRST_RETRY)
        while self._faults.attach_error and self._passed() < self._faults.attach_error_seconds:
            message = (
                f'AttachVolume.Attach failed for volume "{name}" : {self._faults.attach_error}'
            )
            await self._events.of_controller("FailedAttachVolume", message, "Warning")
            await asyncio.sleep(retry.next())
        await asyncio.sleep(self._faults.attach_seconds or 0)
        message = f'AttachVolume.Attach succeeded for volume "{name}" '
        await self._events.of_controller("SuccessfulAttachVolume", message, "Normal")

    async def _conflict(self, claim: str) -> str:
        """Return in the controller's words who has a volume that only one node can have, or ""."""
        modes = set((await self._claim(claim)).get("spec", {}).get("accessModes", []))
        if modes & _SHARED_MODES:
            return ""
        pods = await self._api.get(f"/api/v1/namespaces/{self._namespace}/pods")
        holders = [p["metadata"]["name"] for p in pods["items"] if self._holds(p, claim)]
        if holders:
            return f"Volume is already used by pod(s) {', '.join(holders)}"
        if self._passed() < self._faults.attached_elsewhere_seconds:
            return _ATTACHED_ELSEWHERE
        return ""

    def _holds(self, pod: Object, claim: str) -> bool:
        node = pod["spec"].get("nodeName")
        is_elsewhere = node and node != self._pod["spec"]["nodeName"]
        is_over = pod["status"].get("phase") in ("Succeeded", "Failed")
        claims = {
            volume.get("persistentVolumeClaim", {}).get("claimName")
            for volume in pod["spec"].get("volumes", [])
        }
        # Who came later waits, too.
        was_first = "startTime" in pod["status"] and _has_started(pod)
        return bool(is_elsewhere and not is_over and claim in claims and was_first)

    async def _missing(self, volume: Object) -> str:
        return await missing(self._api, self._namespace, volume)

    async def _mount_error(self, _volume: Object) -> str:
        is_over = self._passed() >= self._faults.mount_error_seconds
        return "" if is_over else self._faults.mount_error

    async def _mount(self, volume: Object, problem: Callable[[Object], Awaitable[str]]) -> None:
        """Try to mount a volume until there is no problem any more."""
        retry = Backoff(_LONGEST_RETRY, _FIRST_RETRY)
        while text := await problem(volume):
            name = await self._name(volume)
            message = f'MountVolume.SetUp failed for volume "{name}" : {text}'
            await self._events.warning("FailedMount", message)
            await asyncio.sleep(retry.next())


def _has_started(pod: Object) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
    return conditions.get("PodReadyToStartContainers") == "True"
