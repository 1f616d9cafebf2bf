"""Pulling images, as pkg/kubelet/images/image_manager.go (v1.36.2) does and tells."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

from localcluster.agent import registry
from localcluster.agent.api import MERGE, Api, Object
from localcluster.agent.backoff import Backoff, first_backoff, go_duration
from localcluster.agent.events import PodEvents
from localcluster.agent.faults import Faults
from localcluster.agent.starting import NotStartedError
from localcluster.nodes import PULL_SECONDS

#: A pod is looked at again soon after a failed pull, for its sandbox has just come.
_SOON = 1.0
#: Errors of the container runtime that have a reason of their own.
_OWN_REASONS = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}


class NodeImages:
    """The images of all nodes: ``status.images`` lists those that were pulled."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # A kubelet pulls one image at a time (serializeImagePulls).
        self.pulling: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def node(self, name: str) -> Object:
        """Read a node."""
        return await self._api.get(f"/api/v1/nodes/{name}")

    async def add(self, name: str, image: str, size: int) -> None:
        """List an image on a node."""
        images = (await self.node(name))["status"].get("images", [])
        status = {"images": [*images, {"names": [registry.tagged(image)], "sizeBytes": size}]}
        await self._api.patch(f"/api/v1/nodes/{name}/status", {"status": status}, MERGE)


class Puller:
    """Pulls the images of one pod.

    Args:
        images: those of all nodes.
        events: tells what happens.
        faults: what shall go wrong.
        node: the pod's node.
        before: called before each pull.
    """

    def __init__(
        self,
        images: NodeImages,
        events: PodEvents,
        faults: Faults,
        node: str,
        before: Callable[[], Awaitable[None]],
    ) -> None:
        self._images = images
        self._before = before
        self._events = events
        self._faults = faults
        self._node = node
        self._backoffs: dict[str, Backoff] = defaultdict(Backoff)
        self._until: dict[str, float] = {}
        self._last_error: dict[str, str] = {}
        self._attempts: dict[str, int] = defaultdict(int)

    async def ensure(self, container: Object) -> None:
        """Return when a container's image is on its node.

        Raises:
            NotStartedError: it isn't, and why.
        """
        image, name = container["image"], container["name"]
        if wrong := registry.invalid_name(image):
            message = f'Failed to apply default image tag "{image}": {wrong}'
            await self._events.warning("InspectFailed", message, name)
            raise NotStartedError("InvalidImageName", message, "InvalidImageName")
        seconds = await self._seconds(image)
        policy = container.get("imagePullPolicy", "IfNotPresent")
        if seconds is None or (seconds == 0 and policy != "Always"):
            # Since 1.35 (KubeletEnsureSecretPulledImages) with these last words.
            present = f'Container image "{image}" already present on machine'
            await self._events.normal("Pulled", f"{present} and can be accessed by the pod", name)
            return
        if policy == "Never":
            message = f'Container image "{image}" is not present with pull policy of Never'
            await self._events.warning("ErrImageNeverPull", message, name)
            raise NotStartedError("ErrImageNeverPull", message, "ErrImageNeverPull")
        await self._pull(image, name, seconds)

    async def _seconds(self, image: str) -> float | None:
        """Return how long a pull takes: 0 if the node has the image, None if nobody asks."""
        node = await self._images.node(self._node)
        at_node = node["metadata"].get("annotations", {}).get(PULL_SECONDS)
        own = self._faults.pull_seconds
        if own is None and at_node is None and not self._fault(image):
            return None
        listed = {name for each in node["status"].get("images", []) for name in each["names"]}
        if registry.tagged(image) in listed:
            return 0.0
        # Less than any real pull, and more than none.
        return float(own if own is not None else at_node or 0.0) or 0.001

    def _fault(self, image: str) -> str:
        return registry.fault_of(image) or self._faults.pull_error

    async def _pull(self, image: str, container: str, seconds: float) -> None:
        left = self._until.get(image, 0.0) - time.monotonic()
        if left > 0:
            message = f'Back-off pulling image "{image}"'
            await self._events.normal("BackOff", message, container)
            message = f"{message}: {self._last_error[image]}"
            raise NotStartedError("ImagePullBackOff", message, "ImagePullBackOff", left)
        await self._before()
        await self._events.normal("Pulling", f'Pulling image "{image}"', container)
        began = time.monotonic()
        async with self._images.pulling[self._node]:
            alone = time.monotonic()
            if fault := self._next_fault(image):
                await self._fail(image, container, fault)
            # The pod that was served before may have pulled the same image.
            is_new = bool(await self._seconds(image))
            await asyncio.sleep(seconds if is_new else 0)
            now = time.monotonic()
            if is_new:
                await self._images.add(self._node, image, self._faults.pull_bytes)
        took, waited = go_duration(now - alone), go_duration(now - began)
        message = (
            f'Successfully pulled image "{image}" in {took} ({waited} including waiting). '
            f"Image size: {self._faults.pull_bytes} bytes."
        )
        await self._events.normal("Pulled", message, container)

    def _next_fault(self, image: str) -> str:
        fault = self._fault(image)
        self._attempts[image] += 1
        return fault if self._attempts[image] <= self._faults.pull_error_times else ""

    async def _fail(self, image: str, container: str, fault: str) -> None:
        error = registry.error(fault, image)
        failed = f'Failed to pull image "{image}": {error}'
        await self._events.warning("Failed", failed, container)
        self._until[image] = time.monotonic() + self._backoffs[image].next()
        reason, message = pull_error(image, error)
        self._last_error[image] = f"{reason}: {message}"
        raise NotStartedError(reason, message, reason, min(_SOON, first_backoff() / 2))


def pull_error(image: str, error: str) -> tuple[str, str]:
    """Return the reason and the message in a status after a pull failed (evalCRIPullErr)."""
    for reason, why in _OWN_REASONS.items():
        if error.startswith(reason):
            rest = error.removeprefix(reason)
            return reason, f"image pull failed for {image} because {why}{rest}"
    return "ErrImagePull", error
