"""The live view of the cluster: one for the whole hub, and the only writer of its state.

Everything runs on the event loop that called `ClusterView.start`. So an evaluation that doesn't
await sees one consistent moment, without locks or copies.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from gpuspawner.cluster.api_groups import ApiGroup
from gpuspawner.cluster.autoscaler_objects import AutoscalerObjects
from gpuspawner.cluster.client import (
    Client,
    ConfigurationFactory,
    InTurn,
    RequestError,
    load_configuration,
)
from gpuspawner.cluster.following import Access, follow
from gpuspawner.cluster.health import (
    Health,
    Live,
    Reading,
    Unreachable,
    health_of,
    is_broken,
    is_forbidden,
    is_open,
)
from gpuspawner.cluster.health_log import HealthLog
from gpuspawner.cluster.kinds import KINDS, ObjectKind, by_group
from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.cluster.pod_events import PodEvents
from gpuspawner.cluster.reflector import Reflector
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.wakeups import Changes
from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules
from gpuspawner.scheduling.state import ClusterState

log = logging.getLogger(__name__)

_LOOK_AT_HEALTH_EVERY = 1.0
VERSION_SECONDS = 600.0
"""How often the API server is asked for its version, even if contact is never lost."""
_NEWER_IN_A_ROW = 3
"""How many answers must be newer than the rules, once one has been older."""
# Answers that no retry changes: this client may not read the path, or the server has none.
_NO_VERSION = (403, 404)


class ClusterView:
    """The cluster's objects as they are now, and how far they can be trusted.

    Args:
        load: Makes the client's configuration; the default finds it as KubeSpawner does.
        kinds: What to follow for the state.
        backoff: Time-outs and back-off.
        rules: The scheduling rules. A callable makes them from the API server's version, which the
            view then asks for first, and again while it runs.
        scaling_kinds: What to follow of autoscalers.
        queue_kinds: What to follow of Kueue.
    """

    def __init__(
        self,
        load: ConfigurationFactory = load_configuration,
        kinds: tuple[ObjectKind, ...] = KINDS,
        backoff: Backoff | None = None,
        rules: Rules | Callable[[str], Rules] = DEFAULT_RULES,
        scaling_kinds: tuple[ObjectKind, ...] = (),
        queue_kinds: tuple[ObjectKind, ...] = (),
    ) -> None:
        self.state = ClusterState(rules if isinstance(rules, Rules) else DEFAULT_RULES)
        self._rules = rules
        self._knows_version = False
        self._newer_in_a_row = _NEWER_IN_A_ROW
        self._access = access = Access(InTurn(load), backoff or Backoff(), self.wake)
        self.contact = access.contact
        self.autoscalers = AutoscalerObjects()
        self.queues = KueueObjects()
        self.events = PodEvents(access)
        how = self.wake, access.background
        self._reflectors = [Reflector(it, self.state, *how) for it in kinds]
        followed = (it for it in scaling_kinds if it.absent_is_empty)
        self._scaling = [Reflector(it, self.autoscalers, *how) for it in followed]
        self._changes = Changes()
        self._groups = [
            *(ApiGroup(it, self.autoscalers, access) for it in by_group(scaling_kinds)),
            *(ApiGroup(it, self.queues, access) for it in by_group(queue_kinds)),
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._listeners: list[Callable[[], None]] = []
        self._health_log = HealthLog(self._reflectors, lambda: (*self._scaling, *self._of_groups()))

    def start(self) -> None:
        """Start reading; a second call does nothing.

        Raises:
            RuntimeError: No event loop is running.
        """
        if self._tasks:
            return
        loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        ruled = loop.create_task(self._learn_rules())
        work = [self._follow(it, ruled) for it in (*self._reflectors, *self._scaling)]
        work += [it.follow() for it in self._groups]
        work += [self._tell_health(), self._renew_rules(ruled)]
        self._tasks = [ruled, *map(loop.create_task, work)]

    async def stop(self) -> None:
        """Stop reading and close the connections; the state stays as it was."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.events.close()
        self.wake()

    def health(self) -> Health:
        """The health of the view at this moment."""
        if not self._tasks:
            return Unreachable("the view is not running")
        return health_of(self._reflectors, self._started, self._access.backoff.silence)

    def in_touch(self) -> bool:
        """Whether the view has an unbroken connection for every required kind.

        Without one it may stay live for some seconds, but it doesn't know what has ended since.
        """
        return all(it.error is None for it in self._reflectors if it.kind.required)

    def silent_for(self, kind: str) -> float:
        """For how many seconds the watch of a kind has said nothing.

        If its connection breaks silently, the view is live and in touch for more than a minute.
        """
        confirmed = (it.confirmed for it in self._reflectors if it.kind.name == kind)
        return max((time.monotonic() - at for at in confirmed), default=0.0)

    def forbidden(self) -> tuple[str, ...]:
        """The optional kinds that the hub may not read, as RBAC names them; others' too."""
        return tuple(it.kind.plural for it in self._optional() if is_forbidden(it))

    def lost_contact(self) -> bool:
        """Whether nothing can be heard of some required kind; not if the hub may not read it."""
        required = (it for it in self._reflectors if it.kind.required)
        return any(it.error is not None and not is_forbidden(it) for it in required)

    async def first_list(self, timeout: float) -> bool:  # noqa: ASYNC109 - a gate's patience
        """Wait until the first list of every kind is complete; return whether the view is live.

        The wait ends after `timeout` seconds, or as soon as a list fails: nobody should wait for an
        API server that forbids the list or can't be reached.
        """
        deadline = time.monotonic() + timeout
        while self._is_reading():
            if not await self._changes.next(deadline - time.monotonic()):
                break
        return isinstance(self.health(), Live)

    async def changed(self, timeout: float) -> bool:  # noqa: ASYNC109 - a start's patience
        """Wait for the next change of the state or the health; return False after `timeout` s."""
        return await self._changes.next(timeout)

    def listen(self, call: Callable[[], None]) -> None:
        """Call *call* at every change of the state or the health, in the same tick."""
        self._listeners.append(call)

    def wake(self) -> None:
        """Call all listeners, and wake every task that waits in `changed` or `first_list`."""
        self.state.expect(self.autoscalers.startup_taints)
        for call in self._listeners:
            call()
        self._changes.tell()
        self._tell()

    async def _learn_rules(self) -> None:
        """Settle the rules before any pod is read: what a pod holds depends on them."""
        if not isinstance(self._rules, Rules):
            self.state.rules = self._rules(await self._version(self._without_version))

    async def _renew_rules(self, ruled: asyncio.Task[None]) -> None:
        """Ask again, above all once contact is back: the API server may have been upgraded."""
        await asyncio.wait([ruled])
        wakes, is_back = self.contact.wakes, True
        while not isinstance(self._rules, Rules):
            # While an API server starts, it forbids everything for some seconds.
            is_starting = is_back and not self._knows_version
            soon = self._access.backoff.doubt
            await self.contact.wait(wakes, soon if is_starting else VERSION_SECONDS)
            is_back, wakes = self.contact.wakes > wakes, self.contact.wakes
            version = await self._version(lambda _: None)
            if version and self._are_to_change(rules := self._rules(version)):
                log.info("The API server is now %s; pods are read again by its rules.", version)
                self.state.judge_by(rules)
                for reflector in self._reflectors:
                    reflector.is_outdated = reflector.kind.name == "Pod"
                self.wake()

    def _are_to_change(self, rules: Rules) -> bool:
        """Whether to judge by these rules of an answer from now on; each change lists all pods.

        While API servers are upgraded one by one, any of them may answer, and the scheduler comes
        last. So an older answer counts at once, and after it, only some newer ones in a row.
        """
        # Since 1.33.6, sidecars' ports count: these rules alone change with a patch release.
        told, known = ((it.minor, it.sidecar_ports) for it in (rules, self.state.rules))
        if told > known:
            self._newer_in_a_row += 1
        elif told < known or self._newer_in_a_row < _NEWER_IN_A_ROW:
            self._newer_in_a_row = 0
        is_sure = told <= known or self._newer_in_a_row >= _NEWER_IN_A_ROW
        return is_sure and rules != self.state.rules

    async def _version(self, lost: Callable[[RequestError], None]) -> str:
        client = Client(self._access.load)
        try:
            version = await server_version(client, self._access.backoff, lost)
        finally:
            await client.close()
        self._knows_version = bool(version)
        return version

    def _without_version(self, error: RequestError) -> None:
        for reflector in self._reflectors:
            reflector.error = error
        self.wake()

    async def _follow(self, reflector: Reflector, ruled: asyncio.Task[None]) -> None:
        await asyncio.wait([ruled])
        await follow(reflector, self._access)

    async def _tell_health(self) -> None:
        """A view becomes stale by the passing of time alone, and so does each optional kind."""
        while True:
            await asyncio.sleep(_LOOK_AT_HEALTH_EVERY)
            broken = [it for it in self._optional() if it.listed and is_broken(it)]
            if fresh := [it for it in broken if not (it.gap or it.distrusted)]:
                for reflector in fresh:
                    reflector.distrust()
                self.wake()
            self._tell()

    def _tell(self) -> None:
        if self._tasks:
            self._health_log.tell(self.health())

    def _optional(self) -> list[Reflector]:
        followed = (*self._reflectors, *self._scaling, *self._of_groups())
        return [it for it in followed if not it.kind.required]

    def _of_groups(self) -> list[Reflector]:
        return [reflector for it in self._groups for reflector in it.reflectors]

    def _is_reading(self) -> bool:
        """Whether waiting may help: nothing has failed, and something isn't read yet."""
        health = self.health()
        if isinstance(health, Live):
            optional = any(map(is_open, (*self._reflectors, *self._scaling)))
            return optional or any(it.is_open for it in self._groups)
        return isinstance(health, Reading)


class _Version(msgspec.Struct, gc=False, rename="camel"):
    git_version: str = ""


async def server_version(
    client: Client, backoff: Backoff, lost: Callable[[RequestError], None]
) -> str:
    """Ask for the version (``v1.36.2``) until there is an answer; "" if it doesn't say.

    `lost` is called with every failure.
    """
    failures = 0
    while True:
        try:
            async with client.get("/version", {}, backoff.page) as response:
                return _version(await response.read())
        except RequestError as error:
            if error.status in _NO_VERSION:
                return ""
            failures += 1
            lost(error)
            await asyncio.sleep(max(error.retry_after, backoff.before_retry(failures)))


def _version(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.MsgspecError:
        return ""
