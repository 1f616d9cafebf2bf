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
from gpuspawner.cluster.feed import Feed
from gpuspawner.cluster.health import Health, Live, Reading, Unreachable
from gpuspawner.cluster.kinds import KINDS, Kind
from gpuspawner.cluster.standing import is_open, standing
from gpuspawner.cluster.telling import Teller
from gpuspawner.cluster.version import server_version
from gpuspawner.cluster.watch import Pace, Watcher
from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules
from gpuspawner.scheduling.state import ClusterState

log = logging.getLogger(__name__)

_LOOK_AT_HEALTH_EVERY = 1.0


class ClusterView:
    """Nodes and pods as they are now, and how far that can be trusted.

    Args:
        load: Makes the client's configuration; the default finds it as KubeSpawner does.
        kinds: What to follow.
        pace: Time-outs and back-off.
        rules: Whose rules decide: those of which version, and of which schedulers. A callable
            makes them of the API server's version, which is then asked for before all else.

    Attributes:
        state: What is known; only the view writes it.
    """

    def __init__(
        self,
        load: ConfigurationFactory = load_configuration,
        kinds: tuple[Kind, ...] = KINDS,
        pace: Pace | None = None,
        rules: Rules | Callable[[str], Rules] = DEFAULT_RULES,
    ) -> None:
        self.state = ClusterState(rules if isinstance(rules, Rules) else DEFAULT_RULES)
        self._rules = rules
        self._pace = pace or Pace()
        self._load = load
        self._feeds = [Feed(kind, self.state, self.wake) for kind in kinds]
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._change = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._teller = Teller(self._feeds)

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
        following = [loop.create_task(self._follow(feed, ruled)) for feed in self._feeds]
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
        required = [feed for feed in self._feeds if feed.kind.required]
        return standing(required, self._started, self._pace.silence)

    def in_touch(self) -> bool:
        """Whether nothing that is required is being asked for again, contact having been lost.

        A picture may be live for some seconds without: what exists is known, what ended is not.
        """
        return all(feed.error is None for feed in self._feeds if feed.kind.required)

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

    async def changed(self, timeout: float) -> bool:  # noqa: ASYNC109 - a waiting seat's patience
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
            version = await server_version(client, self._pace, self._without_version)
            self.state.rules = self._rules(version)
        finally:
            await client.close()

    def _without_version(self, error: RequestError) -> None:
        for feed in self._feeds:
            feed.error = error
        self.wake()

    async def _follow(self, feed: Feed, ruled: asyncio.Task[None]) -> None:
        """Feed one kind for ever: a fault of ours must not end the view, let alone the hub."""
        await asyncio.wait([ruled])
        client = Client(self._load)
        pace = self._pace if feed.kind.required else self._pace.unhurried()
        try:
            while True:
                watcher = Watcher(client, feed.kind, pace)
                try:
                    await feed.run(watcher)
                except Exception:
                    log.exception("Reading %s failed and begins anew", feed.kind.plural)
                    feed.doubt()
                    self.wake()
                await asyncio.sleep(self._pace.last_retry)
        finally:
            await client.close()

    async def _tell_health(self) -> None:
        """Time alone makes a view stale, so look now and then."""
        while True:
            await asyncio.sleep(_LOOK_AT_HEALTH_EVERY)
            self._tell()

    def _tell(self) -> None:
        if self._tasks:
            self._teller.tell(self.health())

    def _is_reading(self) -> bool:
        """Whether patience may help: nothing has failed, and something is not read yet."""
        health = self.health()
        if isinstance(health, Live):
            return any(map(is_open, self._feeds))
        return isinstance(health, Reading)
