"""The live view: one for the whole hub, the only reader and the only writer of its state.

Everything happens on the event loop that called `ClusterView.start`. An evaluation that does not
await therefore sees one consistent moment, without locks or copies.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from gpuspawner.cluster.client import (
    Client,
    ConfigurationFactory,
    RequestError,
    load_configuration,
)
from gpuspawner.cluster.health import Health, Live, Reading, Unreachable, health_of, is_open
from gpuspawner.cluster.kinds import KINDS, Kind
from gpuspawner.cluster.log import HealthLog
from gpuspawner.cluster.reflector import Reflector
from gpuspawner.cluster.version import server_version
from gpuspawner.cluster.watch import Backoff, Watcher
from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules
from gpuspawner.scheduling.state import ClusterState

log = logging.getLogger(__name__)

_LOOK_AT_HEALTH_EVERY = 1.0


class ClusterView:
    """Nodes and pods as they are now, and how far that can be trusted.

    Args:
        load: Makes the client's configuration; the default finds it as KubeSpawner does.
        kinds: What to follow.
        backoff: Time-outs and back-off.
        rules: Whose rules decide: those of which version, and of which schedulers. A callable
            makes them of the API server's version, which is then asked for before all else.

    Attributes:
        state: What is known; only the view writes it.
    """

    def __init__(
        self,
        load: ConfigurationFactory = load_configuration,
        kinds: tuple[Kind, ...] = KINDS,
        backoff: Backoff | None = None,
        rules: Rules | Callable[[str], Rules] = DEFAULT_RULES,
    ) -> None:
        self.state = ClusterState(rules if isinstance(rules, Rules) else DEFAULT_RULES)
        self._rules = rules
        self._backoff = backoff or Backoff()
        self._load = load
        self._reflectors = [Reflector(kind, self.state, self.wake) for kind in kinds]
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._change = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._health_log = HealthLog(self._reflectors)

    def start(self) -> None:
        """Begin to read; a second call does nothing.

        Raises:
            RuntimeError: No event loop is running.
        """
        if self._tasks:
            return
        loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        ruled = loop.create_task(self._learn_rules())
        following = [
            loop.create_task(self._follow(reflector, ruled)) for reflector in self._reflectors
        ]
        self._tasks = [ruled, *following, loop.create_task(self._tell_health())]

    async def stop(self) -> None:
        """End reading and close the connections; the state stays as it was."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        self.wake()

    def health(self) -> Health:
        """How far the state can be trusted at this moment."""
        if not self._tasks:
            return Unreachable("the view is not running")
        required = [reflector for reflector in self._reflectors if reflector.kind.required]
        return health_of(required, self._started, self._backoff.silence)

    def in_touch(self) -> bool:
        """Whether nothing that is required is being asked for again, contact having been lost.

        A picture may be live for some seconds without: what exists is known, what ended is not.
        """
        return all(
            reflector.error is None for reflector in self._reflectors if reflector.kind.required
        )

    async def first_list(self, timeout: float) -> bool:  # noqa: ASYNC109 - a gate's patience
        """Wait until the first list of every kind is whole: True if the view is live.

        False after `timeout` seconds, and at once where the list has failed (it is tried again,
        but nobody should be kept waiting for an API server that forbids it or is not there).
        """
        if self._is_reading():
            await asyncio.sleep(0)  # what has to wait says so first (see gpuspawner.spawn.at_once)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._is_reading():
                    await self._change.wait()
        return isinstance(self.health(), Live)

    async def changed(self, timeout: float) -> bool:  # noqa: ASYNC109 - a waiting reservation's patience
        """Wait for the next change of the state or of the health; False after `timeout` seconds."""
        change = self._change
        await asyncio.sleep(0)  # what has to wait says so first (see gpuspawner.spawn.at_once)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await change.wait()
                return True
        return False

    def listen(self, call: Callable[[], None]) -> None:
        """Call at every change of the state or of the health, in its tick."""
        self._listeners.append(call)

    def wake(self) -> None:
        """Let everybody look again who waits in `changed` or `first_list`, or listens."""
        for call in self._listeners:
            call()
        # Whoever waits holds the old event; whoever comes next waits for the next change.
        change, self._change = self._change, asyncio.Event()
        change.set()
        self._tell()

    async def _learn_rules(self) -> None:
        """Settle whose rules decide; what a pod holds depends on them, so before any is read."""
        if isinstance(self._rules, Rules):
            return
        client = Client(self._load)
        try:
            version = await server_version(client, self._backoff, self._without_version)
            self.state.rules = self._rules(version)
        finally:
            await client.close()

    def _without_version(self, error: RequestError) -> None:
        for reflector in self._reflectors:
            reflector.error = error
        self.wake()

    async def _follow(self, reflector: Reflector, ruled: asyncio.Task[None]) -> None:
        """Reflector one kind for ever: a fault of ours must not end the view, let alone the hub."""
        await asyncio.wait([ruled])
        client = Client(self._load)
        backoff = self._backoff if reflector.kind.required else self._backoff.unhurried()
        try:
            while True:
                watcher = Watcher(client, reflector.kind, backoff)
                try:
                    await reflector.run(watcher)
                except Exception:
                    log.exception("Reading %s failed and begins anew", reflector.kind.plural)
                    reflector.doubt()
                    self.wake()
                await asyncio.sleep(self._backoff.last_retry)
        finally:
            await client.close()

    async def _tell_health(self) -> None:
        """Time alone makes a view stale, so look now and then."""
        while True:
            await asyncio.sleep(_LOOK_AT_HEALTH_EVERY)
            self._tell()

    def _tell(self) -> None:
        if self._tasks:
            self._health_log.tell(self.health())

    def _is_reading(self) -> bool:
        """Whether patience may help: nothing has failed, and something is not read yet."""
        health = self.health()
        if isinstance(health, Live):
            return any(map(is_open, self._reflectors))
        return isinstance(health, Reading)
