"""The live view: one for the whole hub, the only reader and the only writer of its state.

Everything happens on the event loop that called `ClusterView.start`. An evaluation that does not
await therefore sees one consistent moment, without locks or copies.
"""

import asyncio
import logging
import time
from contextlib import suppress

from gpuspawner.cluster.client import Client, ConfigurationFactory, load_configuration
from gpuspawner.cluster.feed import Feed
from gpuspawner.cluster.health import Forbidden, Health, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import KINDS, Kind
from gpuspawner.cluster.watch import Pace, Watcher
from gpuspawner.scheduling.state import ClusterState

log = logging.getLogger(__name__)

# A broken watch is usually taken up again within a second; only then is the picture called stale.
_STALE_AFTER = 10.0
_LOOK_AT_HEALTH_EVERY = 1.0


class ClusterView:
    """Nodes and pods as they are now, and how far that can be trusted.

    Args:
        load: Makes the client's configuration; the default finds it as KubeSpawner does.
        kinds: What to follow.
        pace: Time-outs and back-off.

    Attributes:
        state: What is known; only the view writes it.
    """

    def __init__(
        self,
        load: ConfigurationFactory = load_configuration,
        kinds: tuple[Kind, ...] = KINDS,
        pace: Pace | None = None,
    ) -> None:
        self.state = ClusterState()
        self._pace = pace or Pace()
        self._load = load
        self._feeds = [Feed(kind, self.state, self.wake) for kind in kinds]
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._change = asyncio.Event()
        self._said: tuple[object, ...] = ()

    def start(self) -> None:
        """Begin to read; a second call does nothing.

        Raises:
            RuntimeError: No event loop is running.
        """
        if self._tasks:
            return
        loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        self._tasks = [loop.create_task(self._follow(feed)) for feed in self._feeds]
        self._tasks.append(loop.create_task(self._tell_health()))

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
        return (
            _forbidden(required)
            or _unread(required, time.monotonic() - self._started)
            or _freshness(required, self._pace.silence + _STALE_AFTER)
        )

    async def first_list(self, timeout: float) -> bool:  # noqa: ASYNC109 - a gate's patience
        """Wait until the first list of every kind is whole: True if the view is live.

        False after `timeout` seconds, and at once where the list has failed (it is tried again,
        but nobody should be kept waiting for an API server that forbids it or is not there).
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self._is_reading():
                    await self._change.wait()
        return isinstance(self.health(), Live)

    async def changed(self, timeout: float) -> bool:  # noqa: ASYNC109 - a waiting seat's patience
        """Wait for the next change of the state or of the health; False after `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._change.wait()
                return True
        return False

    def wake(self) -> None:
        """Let everybody look again who waits in `changed` or `first_list`."""
        # Whoever waits holds the old event; whoever comes next waits for the next change.
        change, self._change = self._change, asyncio.Event()
        change.set()
        self._say_health()

    async def _follow(self, feed: Feed) -> None:
        """Feed one kind for ever: a fault of ours must not end the view, let alone the hub."""
        client = Client(self._load)
        pace = self._pace if feed.kind.required else self._pace.unhurried()
        try:
            while True:
                watcher = Watcher(client, feed.kind.path, feed.kind.field_selector, pace)
                try:
                    await feed.run(watcher)
                except Exception:
                    log.exception("Reading %s failed and begins anew", feed.kind.plural)
                    feed.gap = True
                    self.wake()
                await asyncio.sleep(self._pace.last_retry)
        finally:
            await client.close()

    async def _tell_health(self) -> None:
        """Time alone makes a view stale, so look now and then."""
        while True:
            await asyncio.sleep(_LOOK_AT_HEALTH_EVERY)
            self._say_health()

    def _say_health(self) -> None:
        """Log the health once per change of what is so, not of how long."""
        health = self.health()
        if isinstance(health, Live) and self._is_reading():
            return
        what = (type(health), getattr(health, "kinds", ()), self._expired(health))
        if what == self._said or not self._tasks:
            return
        self._said = what
        log.log(_level(health), "%s", _sentence(health))
        forbidden = [feed.kind.plural for feed in self._optional() if _is_forbidden(feed)]
        if forbidden and isinstance(health, Live):
            log.warning(
                "The hub may not list and watch %s; pods whose place depends on them start "
                "unchecked until a ClusterRole grants it.",
                ", ".join(forbidden),
            )

    def _is_reading(self) -> bool:
        """Whether patience may help: nothing has failed, and something is not read yet."""
        health = self.health()
        if isinstance(health, Live):
            return any(not feed.listed and feed.error is None for feed in self._optional())
        return isinstance(health, Reading)

    def _optional(self) -> list[Feed]:
        return [feed for feed in self._feeds if not feed.kind.required]

    def _expired(self, health: Health) -> bool:
        """Whether credentials are what is wrong; other errors vary from try to try."""
        errors = [feed.error for feed in self._feeds if feed.error]
        return isinstance(health, Stale | Unreachable) and any(e.status == 401 for e in errors)


def _is_forbidden(feed: Feed) -> bool:
    return feed.error is not None and feed.error.status == 403


def _forbidden(feeds: list[Feed]) -> Forbidden | None:
    errors = {feed.kind.plural: feed.error for feed in feeds if _is_forbidden(feed)}
    if not errors:
        return None
    return Forbidden(tuple(errors), str(next(iter(errors.values()))))


def _unread(feeds: list[Feed], seconds: float) -> Reading | Unreachable | None:
    unread = [feed for feed in feeds if not feed.listed]
    if not unread:
        return None
    errors = [feed.error for feed in unread if feed.error]
    return Unreachable(str(errors[0])) if errors else Reading(seconds)


def _freshness(feeds: list[Feed], longest_silence: float) -> Live | Stale:
    now = time.monotonic()
    age = max((now - feed.confirmed for feed in feeds), default=0.0)
    for feed in feeds:
        lost = feed.error is not None and now - feed.confirmed > _STALE_AFTER
        if lost:
            return Stale(age, str(feed.error))
        if feed.gap:
            return Stale(age, f"changes of {feed.kind.plural} were missed; they are read again")
    if age > longest_silence:
        return Stale(age, "the API server has fallen silent")
    return Live(age)


def _level(health: Health) -> int:
    return logging.INFO if isinstance(health, Live | Reading) else logging.WARNING


def _sentence(health: Health) -> str:
    match health:
        case Live():
            return "The view of the cluster is live."
        case Reading():
            return "Reading nodes and pods of the cluster for the first time."
        case Stale(age, why):
            return (
                f"The view of the cluster is {age:.0f} s old ({why}); spawns go on unchecked until "
                "it is live again."
            )
        case Forbidden(kinds, text):
            return (
                f"The hub may not list and watch {' and '.join(kinds)} ({text}); spawns go on "
                "unchecked until a ClusterRole grants it."
            )
        case Unreachable(text):
            return f"The cluster cannot be read ({text}); spawns go on unchecked until it can."
