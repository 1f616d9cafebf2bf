"""The reservation of one start: sent with its pod, and given up once however the start ends."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from kubernetes_asyncio.client import V1DeleteOptions

from gpuspawner.compat.kubespawner import Stock
from gpuspawner.preflight.pending_pods import Key
from gpuspawner.quoting import one_line
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.promises import Promises


class HeldReservation:
    """The reservation of a start while KubeSpawner runs it."""

    def __init__(self, spawner: Host, stock: Stock, promises: Promises) -> None:
        self._spawner = spawner
        self._stock = stock
        self._promises = promises
        self._key: Key = ("", "")
        self._was_sent = False

    async def hold(self, key: Key, start: Awaitable[Any], lost: Awaitable[None]) -> Any:
        """Run KubeSpawner's start, and always give the reservation up at the end.

        *lost* raises when another pod has taken the reserved resources.
        """
        self._key, self._was_sent = key, False
        try:
            return await _unless(lost, start)
        except BaseException:
            if self._was_sent:
                await asyncio.shield(self._leave_no_pod())
            raise
        finally:
            self._promises.release(self._key)

    async def send(self, key: Key, pod: Any, request_timeout: float) -> bool:
        """Send the pod, and let no cancellation interrupt the request.

        The API server may still carry out an interrupted request, even after the clean-up.
        """
        self._promises.send(key)
        self._key, self._was_sent = key, True
        request = self._stock.create_pod(pod, request_timeout)
        sending: asyncio.Future[bool] = asyncio.ensure_future(request)
        try:
            made = await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.wait_for(sending, request_timeout)
            raise
        if not made:
            self._promises.send_again(key)
        return made

    async def _leave_no_pod(self) -> None:
        """Delete a pod that KubeSpawner's reflector hasn't seen yet: the hub wouldn't stop it."""
        if self._stock.knows_pod():
            return
        try:
            gone = await self._stock.delete_pod(V1DeleteOptions(grace_period_seconds=0), 0)
        except Exception as error:  # noqa: BLE001, the reservation stays until the view shows
            pod = one_line(f"{self._spawner.namespace}/{self._spawner.pod_name}")
            self._spawner.log.warning("Can't tell whether %s left a pod behind: %r", pod, error)
            return
        if gone:
            self._promises.vacate(self._key)


async def _unless(lost: Awaitable[None], start: Awaitable[Any]) -> Any:
    """Return the result of *start*, unless *lost* raises first."""
    starting, losing = asyncio.ensure_future(start), asyncio.ensure_future(lost)
    try:
        await asyncio.wait([starting, losing], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            losing.result()
        return await starting
    finally:
        starting.cancel()
        losing.cancel()
        await asyncio.gather(starting, losing, return_exceptions=True)
