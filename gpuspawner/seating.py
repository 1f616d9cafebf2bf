"""What a start was promised ends with the start, on every way out, and with it its pod."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from kubernetes_asyncio.client import V1DeleteOptions

from gpuspawner.preflight.seats import Seats
from gpuspawner.preflight.strangers import Key
from gpuspawner.quoting import one_line


class KeepsSeat:
    """A mixin before KubeSpawner in a class's bases."""

    _was_sent = False

    def seats(self) -> Seats:
        """All seats of this hub."""
        raise NotImplementedError

    def seat_key(self) -> Key:
        """What the seat of this start is known by."""
        raise NotImplementedError

    async def until_taken(self) -> None:
        """Wait until the pod's place has gone to somebody else, and raise what tells so."""
        raise NotImplementedError

    async def _start(self) -> Any:
        """Start as KubeSpawner does; whatever comes of it, give up the seat."""
        self._was_sent = False
        try:
            return await self._unless_taken(super()._start())  # type: ignore[misc]
        except BaseException:
            if self._was_sent:
                await asyncio.shield(self._leave_no_pod())
            raise
        finally:
            self.seats().release(self.seat_key())

    async def _unless_taken(self, start: Awaitable[Any]) -> Any:
        starting, taken = asyncio.ensure_future(start), asyncio.ensure_future(self.until_taken())
        try:
            await asyncio.wait([starting, taken], return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                taken.result()
            return await starting
        finally:
            starting.cancel()
            taken.cancel()
            await asyncio.gather(starting, taken, return_exceptions=True)

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> bool:
        """Send the pod, and let nothing cut that off.

        A request that is given up half-way may be carried out all the same, after everything that
        was done to undo it.
        """
        seats, key = self.seats(), self.seat_key()
        seats.send(key)
        self._was_sent = True
        request = super()._make_create_pod_request(pod, request_timeout)  # type: ignore[misc]
        sending: asyncio.Future[bool] = asyncio.ensure_future(request)
        try:
            made = await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.wait_for(sending, request_timeout)
            raise
        if not made:
            seats.send_again(key)
        return made

    async def stop(self, now: bool = False) -> None:
        """Stop as KubeSpawner does, which returns when the pod is gone."""
        await super().stop(now)  # type: ignore[misc]
        self.seats().see_out(self.seat_key())

    async def _leave_no_pod(self) -> None:
        """Delete a pod of which KubeSpawner does not know yet, and which nobody else would stop.

        The hub asks the spawner to stop only what `poll` finds, and that is what the reflector has
        seen.
        """
        spawner: Any = self
        reference = f"{spawner.namespace}/{spawner.pod_name}"
        if reference in spawner.pod_reflector.pods:
            return
        at_once, seconds = V1DeleteOptions(grace_period_seconds=0), spawner.k8s_api_request_timeout
        # Called outside the try: a KubeSpawner that names it otherwise is not to go unnoticed.
        deleting = spawner._make_delete_pod_request(spawner.pod_name, at_once, 0, seconds)  # noqa: SLF001
        try:
            gone = await deleting
        except Exception as error:  # noqa: BLE001, the seat stays until the view tells
            spawner.log.warning(
                "Whether %s has left a pod is not known: %r", one_line(reference), error
            )
            return
        if gone:
            self.seats().vacate(self.seat_key())
