"""Tells owners by the administrator's function, which may fail or hang, that servers are idle."""

import asyncio
import inspect
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from gpuspawner.use.daemon_threads import begun
from gpuspawner.use.gpu_use_config import Notify

log = logging.getLogger(__name__)

_AT_ONCE = 10
"""How many owners are told at once, each in a thread."""
_SECONDS = 180.0
"""How long a notice keeps its place. Linux gives up a connection after some 130 s, and then the
function's own error says more than ours."""
_CALLS = 100
"""How many calls may go on, with those that hang. Each has a thread, and the hub can't have more
than some thousand."""


class Notices:
    """Calls the function, for a few owners at a time."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._calls = set[Future[Any]]()  # that go on

    async def tell(self, told: Mapping[str, Any]) -> None:
        """Tell the owner of a server, with what the function gets. Never raises."""
        server, began = f"{told['user']}/{told['server']}", time.monotonic()
        async with self._turn:
            left = round(told["stops_in_seconds"] - (time.monotonic() - began))
            if left <= 0:
                log.error("The owner of %r isn't told: calls of gpu_use.notify take long", server)
                return
            told = {**told, "stops_in_seconds": left}
            if len(self._calls) >= _CALLS:
                text = "Too many calls of gpu_use.notify hang; the owner of %r isn't told"
                log.error(text, server)
                return
            limit = asyncio.timeout(_SECONDS)
            try:
                async with limit:
                    call = begun(self._notify, told)  # it may send mail
                    self._calls.add(call)
                    call.add_done_callback(self._calls.discard)
                    done = await asyncio.wrap_future(call)
                    if inspect.isawaitable(done):
                        await done
            except (Exception, SystemExit):  # of which the hub would end
                if limit.expired():
                    text = "gpu_use.notify hasn't returned in %g s for %r; the hub waits no longer"
                    log.error(text, _SECONDS, server)  # noqa: TRY400, ours says nothing
                else:
                    log.exception("gpu_use.notify failed")
