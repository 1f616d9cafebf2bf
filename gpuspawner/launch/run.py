"""KubeSpawner's steps of one start, which end early if its server can't come up."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.utils import AnyTimeoutError

from gpuspawner.compat.kubespawner import is_of_others, others_have
from gpuspawner.launch.launching import Launching, going_on_untold, not_sent, not_started, refused
from gpuspawner.launch.progress import Progress
from gpuspawner.launch.unscheduled import question
from gpuspawner.runtime import Runtime
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.host import Host, log_name
from gpuspawner.troubles.facts import Happened
from gpuspawner.troubles.giving_up import StartPhase, late
from gpuspawner.troubles.trouble import Trouble

_running: ContextVar["Run | None"] = ContextVar("_running", default=None)
"""The start to which the current code belongs, in whatever task."""


class Run:
    """One start while KubeSpawner runs it.

    Attributes:
        sent: Set when the pod is about to be sent: from then on, its name is known.
        created: Set once the pod exists.

    Args:
        attempt: Returns the start as it is known by now; None if it was never admitted.
    """

    def __init__(
        self,
        spawner: Host,
        runtime: Runtime,
        progress: Progress,
        attempt: Callable[[], Attempt | None],
    ) -> None:
        self.sent, self.created = asyncio.Event(), asyncio.Event()
        self._spawner = spawner
        self._runtime = runtime
        self._progress = progress
        self._attempt = attempt
        self._launch: Launching | None = None
        self._has_failed = False

    async def until_it_listens(self) -> Any:
        """Run KubeSpawner's steps, and wait for the server if it is ours to; return its address.

        Raises:
            Refusal: KubeSpawner or the server doesn't answer in time.
        """
        _running.set(self)
        try:
            url = await self._spawner.gpuspawner_stock.run_start()
        except AnyTimeoutError as error:  # in KubeSpawner's words, with the names of pods
            if self._has_failed or is_of_others(error):  # the hub logs no traceback of time-outs
                name = log_name(self._spawner)
                self._spawner.log.exception("A step of %s's start timed out", name)
                raise
            if not self.created.is_set():
                raise not_sent(error) from None
            raise not_started(error, self._troubles(), self._node) from None
        if self._launch:
            self._launch.was_ready = True
        ready = time.monotonic()
        # The start of an administrator's class may return another address to the hub, which then
        # needn't reach this one.
        if not others_have(self._spawner, ("start",)):
            await until_reachable(url, self._spawner.http_timeout, self._troubles, self._node)
        self._note_started(time.monotonic() - ready)
        return url

    def _note_started(self, answering: float) -> None:
        if (attempt := self._attempt()) is None or self._launch is None:
            return
        phases = {**self._launch.course.seconds(), StartPhase.ANSWERED.value: answering}
        given, node = attempt.choice.proposal.grant, self._launch.seen.node
        self._runtime.note(Happened.STARTED, self._spawner, given, phases=phases, node=node)

    def deletes_its_pod(self) -> bool:
        """Whether it is this start that deletes the pod that it has created, and not the hub.

        KubeSpawner does so if it can't make the pod's Service or Secret, or if a hook fails.
        """
        self._has_failed = self._has_failed or (self.created.is_set() and _running.get() is self)
        return self._has_failed

    @property
    def _node(self) -> str:
        return self._launch.seen.node if self._launch else ""

    def _troubles(self) -> tuple[Trouble, ...]:
        return self._launch.troubles if self._launch else ()

    async def until_failed(self) -> None:
        """Refuse the start as soon as its pod can't become a server, or takes too long.

        That is also if another pod takes its room, or if no node comes for it.
        """
        await self.sent.wait()
        if (attempt := self._attempt()) is None:
            return
        events, key = self._runtime.view.events, attempt.choice.proposal.key
        # Before the pod exists: its first events may come at once, and only once.
        with events.of(*key) as heard, events.of(*key) as answers:
            await self.created.wait()  # the last gate may decide otherwise than the second
            if (sent := self._attempt()) is None:
                return
            with going_on_untold(self._spawner):
                asked = question(self._spawner, self._runtime, sent, answers)
                self._launch = Launching(self._spawner, self._runtime, self._progress, sent, asked)
                await self._launch.until_failed(heard)


# Waits until a server that runs also listens, so that the message can name a crash until then.
#
# The hub itself waits for the server's answer afterwards, without looking at its pod.

NEWS_SECONDS = 2.0
"""How much later than a crash the hub may know of it: the kubelet looks once a second, and so does
the hub. A hub that stood still for seconds has its own time-out end before it reads any news."""
_CONNECT_SECONDS = 5.0
# A small server listens some 50 ms after its container runs, and the hub's page waits for it.
_FIRST_SECONDS, _LONGEST_SECONDS = 0.02, 0.2
_GROWTH = 1.5


async def until_reachable(
    url: object, patience: float, troubles: Callable[[], Iterable[Trouble]] = tuple, node: str = ""
) -> None:
    """Wait until something accepts connections at a server's address.

    Args:
        url: As KubeSpawner's start returns it; anything else isn't waited for.
        patience: In seconds; the hub's own ``http_timeout``.
        troubles: Returns what goes wrong: a server that has crashed doesn't listen.
        node: The server's node, for the hub's log.

    Raises:
        Refusal: Nothing does.
    """
    address = _address(url)
    if address is None or await _accepts_within(patience, *address):
        return
    failure = late(troubles(), StartPhase.ANSWERED)
    if failure.cause is None or failure.cause.exit is None:
        if await _accepts_within(NEWS_SECONDS, *address):
            return
        failure = late(troubles(), StartPhase.ANSWERED)
    raise refused(failure, node=node)


async def _accepts_within(seconds: float, host: str, port: int) -> bool:
    """Whether something accepts connections before so many seconds are over."""
    pause = _FIRST_SECONDS
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not await _accepts(host, port):
                await asyncio.sleep(pause)
                pause = min(pause * _GROWTH, _LONGEST_SECONDS)
            return True
    return False


def _address(url: object) -> tuple[str, int] | None:
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.hostname, port


async def _accepts(host: str, port: int) -> bool:
    with suppress(OSError, UnicodeError):  # as a name that no host can have
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False
