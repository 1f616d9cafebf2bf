"""Following one kind of object, under scripted faults; tests/cluster has a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gpuspawner.cluster.following import Following
from gpuspawner.cluster.health import STALE_AFTER, Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import servers_of
from gpuspawner.kube.objects import AnyObject, Undecodable
from tests.unit.makers.scripted import FAST, ScriptedServer, Step, event, failure, obj, page, watch
from tests.waiting import UNIT_PATIENCE as PATIENCE

A = obj("a", namespace="jhub")
B = obj("b", version="2", namespace="jhub")


class Names:
    """A store that keeps the names of the pods.

    Attributes:
        broken: Names of pods for which it raises an error.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.broken: set[str] = set()

    def keys(self, kind: str) -> Iterator[tuple[str, str]]:
        assert kind == "ServerPod"
        yield from (("jhub", name) for name in self.names)

    def mark_known(self, kind: str) -> None: ...

    def mark_unknown(self, kind: str) -> None: ...

    def put(self, thing: AnyObject | Undecodable) -> None:
        name = thing.name if isinstance(thing, Undecodable) else thing.metadata.name
        if name in self.broken:
            raise KeyError(name)
        self.names.add(name)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        assert (kind, namespace) == ("ServerPod", "jhub")
        self.names.discard(name)


class Followed:
    """What a test looks at.

    Attributes:
        told: How often the owner of the store was notified.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.store = Names()
        self.told = 0
        kind, load = servers_of("jhub"), server.configuration
        self.following = Following(kind, self.store, load, self._tell, FAST)

    def _tell(self) -> None:
        self.told += 1

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                await self.following.changed(0.05)

    def is_live(self) -> bool:
        return isinstance(self.following.health(), Live)


@asynccontextmanager
async def following(*script: Step) -> AsyncIterator[Followed]:
    """Follow the pods of a scripted server; when the script is used up, it answers 503."""
    server = ScriptedServer(pods=list(script))
    async with server.serving():
        followed = Followed(server)
        followed.following.start()
        try:
            yield followed
        finally:
            await followed.following.stop()


async def test_a_store_is_live_once_the_first_list_is_complete() -> None:
    async with following(page(A, B), watch(hold=True)) as it:
        assert isinstance(it.following.health(), Reading)
        assert await it.following.live(PATIENCE)

        assert it.is_live()
        assert it.store.names == {"a", "b"}


async def test_only_pods_that_have_not_ended_are_asked_for() -> None:
    async with following(page(), watch(hold=True)) as it:
        await it.following.live(PATIENCE)

        selector = "status.phase!=Succeeded,status.phase!=Failed"
        assert it.server.queries[0]["fieldSelector"] == selector


async def test_every_change_reaches_the_store_and_tells_its_owner() -> None:
    later = asyncio.Event()

    async def step(request: object) -> object:
        await later.wait()
        return await watch(event("ADDED", B), event("DELETED", A), hold=True)(request)  # type: ignore[arg-type]

    async with following(page(A), step) as it:  # type: ignore[arg-type]
        await it.following.live(PATIENCE)
        told = it.told
        waiting = asyncio.create_task(it.following.changed(PATIENCE))
        await asyncio.sleep(0)
        later.set()

        assert await waiting
        await it.until(lambda: it.store.names == {"b"})
        assert it.told > told


async def test_a_pod_that_is_gone_after_a_gap_is_dropped() -> None:
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    async with following(page(A), gone, page(B), watch(hold=True)) as it:
        await it.until(lambda: it.store.names == {"b"})

        await it.until(it.is_live)


async def test_after_a_gap_nothing_is_trusted_until_the_next_list_is_complete() -> None:
    """A count from what the hub saw before would be a guess."""
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    async with following(page(A), gone, *[failure(500)] * 1000) as it:
        await it.until(lambda: isinstance(it.following.health(), Stale))

        assert it.store.names == {"a"}


async def test_a_watch_that_ends_is_resumed_and_stays_trusted() -> None:
    watches = watch(event("ADDED", B)), watch(event("DELETED", A)), watch(hold=True)
    async with following(page(A), *watches) as it:
        await it.until(lambda: it.store.names == {"b"})

        assert it.is_live()


async def test_a_watch_without_contact_is_trusted_for_some_seconds_only(monkeypatch) -> None:
    async with following(page(A), *[failure(503)] * 10_000) as it:
        await it.following.live(PATIENCE)
        await it.until(lambda: it.following._reflector.error is not None)
        assert it.is_live()

        late = time.monotonic() + STALE_AFTER + 1
        monkeypatch.setattr("gpuspawner.cluster.health.time.monotonic", lambda: late)

        assert isinstance(it.following.health(), Stale)


async def test_who_waits_while_contact_is_lost_goes_on_when_it_is_back(monkeypatch) -> None:
    """A watch without news for long is stale as soon as it breaks; the next one is soon there."""
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.0)
    back = asyncio.Event()

    async def next_watch(request: web.Request) -> web.StreamResponse:
        await back.wait()
        return await watch(event("BOOKMARK", obj("", "9")), hold=True)(request)

    async with following(page(), failure(500), next_watch) as it:
        assert await it.following.live(PATIENCE)
        await it.until(lambda: isinstance(it.following.health(), Stale))

        assert not await it.following.live(0.05)
        waiting = asyncio.create_task(it.following.live(PATIENCE))
        await asyncio.sleep(0)
        assert not waiting.done()
        back.set()
        assert await waiting


async def test_nobody_waits_for_a_list_that_is_forbidden() -> None:
    async with following(*[failure(403, "no")] * 1000) as it:
        async with asyncio.timeout(PATIENCE):
            assert not await it.following.live(3600)

        health = it.following.health()
        assert isinstance(health, Forbidden)
        assert health.kinds == ("pods",)


async def test_a_list_that_fails_is_unreachable_until_a_later_one_succeeds() -> None:
    async with following(failure(500), failure(500), page(A), watch(hold=True)) as it:
        assert not await it.following.live(PATIENCE)
        assert isinstance(it.following.health(), Unreachable)

        await it.until(it.is_live)


async def test_the_first_list_is_waited_for_as_long_as_patience_lasts() -> None:
    async def never(_: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError

    async with following(never) as it:  # type: ignore[arg-type]
        assert not await it.following.live(0.01)
        assert not await it.following.live(0)
        assert isinstance(it.following.health(), Reading)


async def test_an_error_of_the_store_is_logged_distrusted_and_reading_starts_again(caplog) -> None:
    broken = watch(event("ADDED", B), hold=True)
    async with following(page(A), broken, page(A, B), watch(hold=True)) as it:
        await it.following.live(PATIENCE)
        it.store.broken = {"b"}
        await it.until(lambda: "starting again" in caplog.text)
        assert not it.is_live()
        it.store.broken = set()

        await it.until(it.is_live)
        assert it.store.names == {"a", "b"}


@pytest.mark.each_python
async def test_before_the_start_and_after_the_stop_nothing_is_trusted() -> None:
    async with following(page(A), watch(hold=True)) as it:
        other = Following(servers_of("jhub"), Names(), it.server.configuration, backoff=FAST)
        assert isinstance(other.health(), Unreachable)
        assert not await other.live(PATIENCE)
        await other.stop()

        await it.following.live(PATIENCE)
        await it.following.stop()

        assert isinstance(it.following.health(), Unreachable)
        await it.following.stop()


@pytest.mark.each_python
async def test_a_second_start_does_nothing_and_stop_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with following(page(A), watch(hold=True)) as it:
        it.following.start()
        assert await it.following.live(PATIENCE)
        assert len([query for query in it.server.queries if "limit" in query]) == 1

    assert not {task for task in asyncio.all_tasks() - before if "follow" in repr(task)}


@pytest.mark.each_python
async def test_waiting_for_a_change_ends_in_time() -> None:
    async with following(page(A), watch(hold=True)) as it:
        await it.following.live(PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while await it.following.changed(0.1):
                pass


@pytest.mark.each_python
def test_without_an_event_loop_nothing_can_be_followed() -> None:
    made = Following(servers_of("jhub"), Names(), ScriptedServer().configuration)

    with pytest.raises(RuntimeError):
        made.start()
