"""Looks again and again whether the GPUs of servers are used, and warns their owners if not."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuspawner.compat.jupyterhub import all_users, hub, running, running_or_checked, unused_for
from gpuspawner.kube.meta import Key
from gpuspawner.kube.servers import ServerAnnotations
from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.runtime import Runtime
from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.use.gpu_use_config import Notify
from gpuspawner.use.idle_servers import GPUUse, IdleStanding, Window, use_of
from gpuspawner.use.notices import Notices
from gpuspawner.use.prometheus import Prometheus, UseUnknownError
from gpuspawner.use.record import ServerName

log = logging.getLogger(__name__)

SECONDS = 60.0
"""The longest time from one look to the next; short rules are looked at more often."""
_SHOWN_SECONDS = 3600
"""Over how long the page shows the use of servers that no policy gives back."""
_AT_ONCE = 200
"""How many servers are looked at before others may use the hub."""


Windows = dict[int, Window | None]
"""What is known over each length that is asked for, in seconds; None if nothing is."""


class Watched(msgspec.Struct, frozen=True):
    """What is known of one server with a GPU.

    Attributes:
        use: Over the time of its rule; None if it isn't known.
        used_at: When a look has last found that its GPUs are used; None if none has.
        rule: When it is given back; None for never.
        uid: Its pod's.
        kinds: As what somebody in line may wait for its GPUs: accelerators, and the resource.
        gpus: How many devices it has.
        told_at: When its owner was last told of a warning; None if never, or if it was kept since.
        began_as: The name that its owner had when it started; "" if its pod doesn't say.
        stays: Whether nobody may stop it for its use: its owner keeps it, or nobody has looked at
            it yet. After the hub's start, it may have a job for hours, and nobody at its page.
    """

    spawner: Any
    key: Key
    uid: str
    accelerator: str
    kinds: frozenset[str]
    gpus: int
    began: datetime | None
    rule: WhenIdle | None
    use: GPUUse | None = None
    used_at: float | None = None
    standing: IdleStanding = IdleStanding()
    told_at: float | None = None
    began_as: str = ""
    stays: bool = False

    @property
    def server(self) -> ServerName:
        """The names of its owner and of the server."""
        return self.spawner.user.name, self.spawner.name

    @property
    def state(self) -> str:
        """Whether its GPUs are ``used`` or ``unused``; ``unknown`` if nobody knows."""
        if self.use is None:
            return "unknown"
        return "used" if self.use.is_used else "unused"

    def seconds(self, awaited: Iterable[str]) -> int:
        """Return over how long its use counts, if *awaited* is what people in line wait for."""
        if self.rule is None:
            return _SHOWN_SECONDS
        is_free = self.kinds.isdisjoint(awaited)
        return self.rule.after if is_free else self.rule.after_if_others_wait


class UseWatch:
    """The use of the GPUs of a hub's servers.

    Args:
        source: What says whether they are used.
        notify: Tells owners of warnings.
        clock: Never goes back.
        counted_as: Says as which accelerator the census counts what a pod calls its GPUs.

    Attributes:
        idle_gpu_seconds: How long servers have had GPUs that weren't used, by accelerator.
    """

    def __init__(
        self,
        running: Runtime,
        source: Prometheus,
        notify: Notify | None = None,
        clock: Callable[[], float] = time.monotonic,
        counted_as: Callable[[Key, str], str] = lambda _, kind: kind,
    ) -> None:
        self._running = running
        self._source = source
        self._notices = Notices(notify) if notify else None
        self._clock = clock
        self._counted_as = counted_as
        self.idle_gpu_seconds = Counter[str]()
        self._servers: dict[Key, Watched] = {}  # by pods: their owners may be renamed
        self._earlier: dict[ServerName, IdleStanding] = {}  # from before the hub's start
        self._looked_at = -1e9  # when the last look began that has ended
        self._version = 0
        self._pause = SECONDS
        self._unknown: set[float] = set()  # the windows of which it is logged

    @property
    def version(self) -> int:
        """Changes whenever `find` says something else of the use of a server."""
        return 0 if self._is_late() else self._version

    @property
    def sees_pods(self) -> bool:
        """Whether the hub sees the pods of all its servers."""
        accounts = self._running.accounts
        return accounts is None or accounts.is_current()

    async def standings(self) -> AsyncIterator[Watched]:
        """Yield what is known now of each server with a GPU.

        Also of those that the hub's start still checks: the culler may ask for them by then.
        """
        async for it in self._with_gpus(running_or_checked):
            last = self._servers.get(it.key)
            is_new = last is None or last.uid != it.uid
            is_kept = last is not None and self._clock() < last.standing.kept_until
            known = None if is_new else self.find(it.key)
            yield replace(known or it, stays=is_new or is_kept)

    def find(self, key: Key) -> Watched | None:
        """Return what is known of a pod that runs still; None if the last look is too old."""
        it = self._servers.get(key)
        return None if it is None or self._is_late() or not self._runs(it) else it

    def about(self, spawner: Any) -> Watched | None:
        """Return a server that is up, with what is known of its use; None without a GPU."""
        it = self._watched(spawner)
        return it and (self.find(it.key) or it)

    def _is_late(self) -> bool:
        """Whether the last look is too long ago, so that nothing is known any more."""
        return self._clock() - self._looked_at >= 3 * SECONDS

    def _runs(self, it: Watched) -> bool:
        """Whether a server has its pod still; a later one of its name may have another."""
        accounts = self._running.accounts
        pod = accounts.ledger.pods.get(it.key) if accounts is not None else None
        return pod is not None and pod.metadata.uid == it.uid

    async def run(self) -> None:
        """Look again and again. Never raises."""
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("Can't tell which GPUs are used")
            await asyncio.sleep(self._pause)

    async def look(self) -> None:
        """Look once at all servers."""
        began = self._clock()
        awaited = self._running.preflight.line.waiting()
        found = [it async for it in self._with_gpus()]
        windows: Windows = {}
        for it in found:
            windows.setdefault(it.seconds(awaited), None)
            if it.rule is not None and self._is_kept(it):
                windows.setdefault(it.rule.after_if_others_wait, None)
        for seconds in windows:
            windows[seconds] = await self._window(seconds)
        if None not in windows.values():
            self._unknown.clear()
        found = [it for it in found if self._runs(it)]  # Prometheus may have taken long
        pause = min([SECONDS, *(it / 12 for it in windows)])
        self._pause = max(1.0, began + pause - self._clock())  # what is known is as old as `began`
        for number, it in enumerate(found):
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            # One by one: an owner may keep a server meanwhile.
            self._servers[it.key] = self._stands(it, windows, it.seconds(awaited))
        self._servers = {it.key: self._servers[it.key] for it in found}
        self._count_idle(began - self._looked_at)
        self._looked_at = began

    def _count_idle(self, seconds: float) -> None:
        """Count the time since the last look; after a longer break, nobody knows."""
        if self._is_late():
            return
        for it in self._servers.values():
            if it.use is not None and not it.use.is_used:
                accelerator = self._counted_as(it.key, it.accelerator)
                self.idle_gpu_seconds[accelerator] += round(it.gpus * seconds)

    async def _window(self, seconds: float) -> Window | None:
        try:
            window = await self._source.window(seconds)
        except UseUnknownError as error:
            if seconds not in self._unknown:
                over = f"the last {seconds / 60:g} min"
                log.warning("gpu_use.prometheus: GPUs' use over %s isn't known: %s", over, error)
            self._unknown.add(seconds)
            return None
        self._unknown.discard(seconds)
        return window

    async def _with_gpus(
        self, spawners: Callable[[Any], dict[str, Any]] = running
    ) -> AsyncIterator[Watched]:
        for user in all_users(hub()):
            for spawner in spawners(user).values():
                if it := self._watched(spawner):
                    yield it
            await asyncio.sleep(0)

    def _watched(self, spawner: Any) -> Watched | None:
        accounts = self._running.accounts
        pod = accounts.ledger.pods.get(key_of(spawner)) if accounts is not None else None
        if accounts is None or pod is None or not (gpus := accounts.ledger.devices(pod)):
            return None
        granted = spawner.gpuspawner_gates.server_state.granted
        key, began, rule = pod.metadata.key, pod.runs_since, granted.idle
        names = pod.metadata.annotations or ServerAnnotations()
        charge, offered = accounts.usage.pods.get(key), self._running.offers.accelerators
        kind = charge.kind(offered) if charge is not None else ""
        kinds = {kind, self._counted_as(key, kind), *(charge.kinds if charge is not None else ())}
        has = kind, frozenset(kinds), gpus, began, rule
        return Watched(spawner, key, pod.metadata.uid, *has, began_as=names.user)

    def _is_kept(self, it: Watched) -> bool:
        """Whether the last look knows that an owner has kept a server since it was used."""
        last = self._servers.get(it.key)
        return last is not None and last.standing.kept > 0

    def _stands(self, it: Watched, windows: Windows, seconds: int) -> Watched:
        use = _use(it, windows.get(seconds))
        last = self._servers.get(it.key)
        before = last if last is not None and last.uid == it.uid else it
        if use != before.use:
            self._version += 1
        used_at = self._clock() if use is not None and use.is_used else before.used_at
        it = replace(it, use=use, used_at=used_at)
        if it.rule is None:
            return it
        earlier = before.standing if before is last else self._earlier_of(it)
        if self._is_late():  # since then nobody could keep it, nor read that it will be stopped
            earlier = replace(earlier, stops_at=None)
        lately = _use(it, windows.get(it.rule.after_if_others_wait))
        standing, happened = earlier.after(use, lately, it.rule, self._clock())
        made = replace(it, standing=standing, told_at=before.told_at)
        for each in happened:
            self._note(made, each, it.rule)
        return self._tell(made, it.rule) if Happened.WARNED in happened else made

    def _earlier_of(self, it: Watched) -> IdleStanding:
        """Return how a server stood with earlier hubs, once: not for the next of its name.

        The record calls it by its owner's name when it started, or since the hub's last start.
        """
        user, server = it.server
        names = [name for name in (user, it.began_as) if (name, server) in self._earlier]
        return self._earlier.pop((names[0], server)) if names else IdleStanding()

    def _note(self, it: Watched, happened: Happened, rule: WhenIdle) -> None:
        unused = it.use.seconds if it.use else 0.0
        times = {Happened.IDLE: unused, Happened.WARNED: rule.warning, Happened.KEPT: rule.kept}
        seconds = float(times.get(happened, 0))
        self._running.note(
            happened, it.spawner, seconds=seconds, accelerator=it.accelerator, gpus=it.gpus
        )

    def _tell(self, it: Watched, rule: WhenIdle) -> Watched:
        """Tell its owner of a warning, unless that was done lately.

        Each look that fails ends a warning, and the next one begins anew. But if a GPU was used
        since the last notice, all of the time in which it is called unused has passed since then.
        """
        now, unused = self._clock(), it.use.seconds if it.use else 0.0
        if self._notices is None or (it.told_at is not None and now < it.told_at + unused):
            return it
        user, server = it.server
        told = {"user": user, "server": server, "accelerator": it.accelerator, "gpus": it.gpus}
        told |= {"idle_seconds": unused, "stops_in_seconds": rule.warning}
        self._running.run(self._notices.tell(told))
        return replace(it, told_at=now)

    def keep(self, key: Key) -> bool:
        """Keep a server for a while, if its owner may; return whether it is kept."""
        it = self.find(key)
        if it is None or it.rule is None or not self.may_keep(it):
            return False
        standing = it.standing.keep(it.rule, self._clock())
        self._servers[key] = replace(it, standing=standing, told_at=None)
        self._note(it, Happened.KEPT, it.rule)
        return True

    def restore(self, facts: Iterable[Fact]) -> None:
        """Take over until when owners keep their servers, and how often they have.

        *facts* are what earlier hubs have noted.
        """
        found, now = self._earlier, time.time()
        for it in facts:
            server = it.user, it.server
            before = found.get(server, IdleStanding())
            match it.happened:
                case Happened.KEPT:
                    # Not later: the clock may have been ahead then.
                    until = min(it.at, now) + it.seconds - now + self._clock()
                    found[server] = IdleStanding(kept_until=until, kept=before.kept + 1)
                case Happened.USED:
                    found[server] = replace(before, kept=0)
                case _:
                    self.hear(it)

    def hear(self, fact: Fact) -> None:
        """Forget what earlier hubs have noted of a server that ends, or of one before it."""
        if fact.happened in (Happened.GRANTED, Happened.ENDED):
            self._earlier.pop((fact.user, fact.server), None)

    def may_keep(self, it: Watched) -> bool:
        """Whether its owner may keep a server: not once the culler may have been told to stop."""
        is_over = self.may_stop(it)
        return it.rule is not None and not is_over and it.standing.may_keep(it.rule)

    def may_stop(self, it: Watched) -> bool:
        """Whether a server may be stopped, by the last look."""
        return it.standing.may_stop(self._looked_at)

    def stops_in(self, it: Watched) -> float | None:
        """Return for how many seconds its owner may still answer; None if there is no warning."""
        at = it.standing.stops_at
        return None if at is None else max(0.0, at - self._clock())

    def kept_for(self, it: Watched) -> float:
        """Return for how many seconds its owner still keeps a server."""
        return max(0.0, it.standing.kept_until - self._clock())

    def unused_for(self, seconds: float) -> frozenset[Key]:
        """Return the pods that nobody has used for so long.

        Those are the ones whose GPUs weren't used, and also those of inactive servers, unless a GPU
        was seen in use in that time: then it may be a job that nobody looks at.
        """
        known, now = [it for key in self._servers if (it := self.find(key))], self._looked_at
        used = {it.key for it in known if it.used_at is not None and now - it.used_at < seconds}
        unused = {
            it.key
            for it in known
            if it.use is not None and not it.use.is_used and it.use.seconds >= seconds
        }
        return (unused_for(seconds) - used) | unused


def _use(it: Watched, window: Window | None) -> GPUUse | None:
    return use_of(window, it.key, it.gpus, it.began) if window is not None else None


def key_of(spawner: Any) -> Key:
    """Return the namespace and name of a server's pod."""
    return spawner.namespace, spawner.pod_name
