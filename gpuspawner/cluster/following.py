"""Follows one kind of object outside of the view's state, with a health of its own."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import Client, ConfigurationFactory
from gpuspawner.cluster.health import Health, Live, Reading, Stale, Unreachable, health_of
from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.list_watch import Watcher
from gpuspawner.cluster.reflector import Reflector, Store
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.wakeups import Changes, Contact

log = logging.getLogger(__name__)


class Access(msgspec.Struct, frozen=True):
    """What all that read one API server for the same owner share.

    Attributes:
        load: Makes the configuration of a client.
        wake: Tells the owner of every change of what is read, or of its freshness.
        contact: As in `Watcher`.
        background: As in `Reflector`.
    """

    load: ConfigurationFactory
    backoff: Backoff
    wake: Callable[[], None]
    contact: Contact = msgspec.field(default_factory=Contact)
    background: Background = msgspec.field(default_factory=Background)


async def follow(reflector: Reflector, access: Access) -> None:
    """Follow one kind forever: an error of ours must not end it, let alone the hub."""
    client, backoff = Client(access.load), access.backoff
    patience = backoff if reflector.kind.required else backoff.unhurried()
    how = patience, access.contact, reflector.background
    try:
        while True:
            watcher = Watcher(client, reflector.kind, *how)
            try:
                await reflector.run(watcher)
            except Exception:
                log.exception("Reading %s failed; starting again", reflector.kind.plural)
                reflector.doubt()
                access.wake()
                await asyncio.sleep(backoff.last_retry)
    finally:
        await client.close()


class Following:
    """One kind of object that a store follows.

    Args:
        notify: Called after every change of the store or of its freshness.
        load, contact: As in `Access`.
    """

    def __init__(
        self,
        kind: ObjectKind,
        store: Store,
        load: ConfigurationFactory,
        notify: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        contact: Contact | None = None,
    ) -> None:
        self._reflector = Reflector(kind, store, self.wake)
        self._notify = notify
        self._access = Access(load, backoff or Backoff(), self.wake, contact or Contact())
        self._task: asyncio.Task[None] | None = None
        self._started = time.monotonic()
        self._changes = Changes()

    def start(self) -> None:
        """Start reading; a second call does nothing.

        Raises:
            RuntimeError: No event loop is running.
        """
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._started = time.monotonic()
            self._task = loop.create_task(follow(self._reflector, self._access))

    async def stop(self) -> None:
        """Stop reading and close the connection."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def health(self) -> Health:
        """How far the store can be trusted at this moment."""
        if self._task is None:
            return Unreachable("nothing is read yet")
        return health_of([self._reflector], self._started, self._access.backoff.silence)

    async def live(self, timeout: float) -> bool:  # noqa: ASYNC109 - a gate's patience
        """Wait until the first list is complete, or contact is back; return whether it is live."""
        deadline = time.monotonic() + timeout
        while isinstance(self.health(), Reading | Stale):
            if not await self.changed(deadline - time.monotonic()):
                break
        return isinstance(self.health(), Live)

    async def changed(self, timeout: float) -> bool:  # noqa: ASYNC109 - a start's patience
        """Wait for the next change; return False after `timeout` seconds."""
        return await self._changes.next(timeout)

    def wake(self) -> None:
        """Tell the store's owner, and every task that waits in `changed`."""
        self._notify()
        self._changes.tell()
