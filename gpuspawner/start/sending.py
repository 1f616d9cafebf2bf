"""Sends the pod of one start, and reports once how the start ends, however it does."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from kubernetes_asyncio.client import V1DeleteOptions

from gpuspawner.kube.meta import Key
from gpuspawner.kube.quoting import one_line
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.start.host import Host

_DELETING_SECONDS = 10.0
"""How long a failed start asks for the end of its pod; an API server that restarts takes less."""
_PAUSE_SECONDS = 0.5


class Sending:
    """Runs KubeSpawner's start of one server, and notes in its promise what becomes of it.

    Attributes:
        may_exist: Whether the pod has been sent, and not been deleted again.
    """

    def __init__(self, spawner: Host, reservations: Reservations) -> None:
        self._spawner = spawner
        self._stock = spawner.gpuspawner_stock
        self._reservations = reservations
        self._key: Key = ("", "")
        self.may_exist = False
        self._losing: asyncio.Future[None] | None = None

    async def hold(self, key: Key, start: Awaitable[Any], lost: Awaitable[None]) -> Any:
        """Run KubeSpawner's start, and always end its promise.

        *lost* raises when the start is in vain, or ends if it can't be any more.
        """
        self._key, self.may_exist = key, False
        self._losing = asyncio.ensure_future(lost)
        try:
            return await _unless(self._losing, start)
        except asyncio.CancelledError:
            if self.may_exist:  # once: the hub waits for a second, and a next start may come
                self.may_exist = not await self._deleted(self._delete())
            raise
        except BaseException:
            if self.may_exist and not self._stock.stops_pod():  # else the hub stops it
                await self._deleted(self._delete_soon())
            raise
        finally:
            self._reservations.end(self._key)

    def follow_no_more(self) -> None:
        """Let the start end by itself, although it can't be a server any more."""
        if self._losing is not None:
            self._losing.cancel()

    def rename(self, key: Key) -> None:
        """Note the pod's own name: hooks, profiles and classes may have changed it."""
        self._reservations.rename(self._key, key)
        self._key = key

    async def send(self, key: Key, pod: Any, request_timeout: float) -> bool:
        """Send the pod, and let no cancellation interrupt the request.

        The API server may still carry out an interrupted request, even after the clean-up.
        """
        self._reservations.send(key)
        self._key, self.may_exist = key, True
        request = self._stock.create_pod(pod, request_timeout)
        sending: asyncio.Future[bool] = asyncio.ensure_future(request)
        try:
            made = await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.wait_for(sending, request_timeout)
            raise
        if not made:
            self._reservations.send_again(key)
        return made

    def _delete(self) -> Awaitable[bool]:
        """Send a request that no cancellation interrupts; its result is whether the pod is gone."""
        request = self._stock.delete_pod(V1DeleteOptions(grace_period_seconds=0), 0)
        return asyncio.shield(request)

    async def _delete_soon(self) -> bool:
        """Send requests until one is answered.

        Raises:
            TimeoutError: None was.
        """
        async with asyncio.timeout(_DELETING_SECONDS):
            while True:
                if await self._delete():
                    return True
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _deleted(self, request: Awaitable[bool]) -> bool:
        """Return whether the pod is gone, and log if nobody knows."""
        error: object = TimeoutError()
        try:
            if await request:
                self._reservations.vacate(self._key)
                return True
        except Exception as raised:  # noqa: BLE001, the promise stays until the watches show
            error = raised
        pod = one_line(f"{self._spawner.namespace}/{self._spawner.pod_name}")
        if str(error) == "Session is closed":  # aiohttp's words, once the hub ends
            self._spawner.log.info(
                "%s was still starting; the hub deletes it after its restart", pod
            )
        else:
            self._spawner.log.warning("Can't tell whether %s left a pod behind: %r", pod, error)
        return False


async def _unless(losing: asyncio.Future[None], start: Awaitable[Any]) -> Any:
    """Return the result of *start*, unless *losing* raises first."""
    starting = asyncio.ensure_future(start)
    try:
        await asyncio.wait([starting, losing], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done() and not losing.cancelled():
            losing.result()
        return await starting
    finally:
        for task in (starting, losing):
            task.cancel()
        await asyncio.gather(starting, losing, return_exceptions=True)
