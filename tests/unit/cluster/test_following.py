"""Following one kind of object, under scripted faults; tests/cluster has a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpuspawner.cluster.following import Following
from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.cluster.kinds import servers_of
from gpuspawner.kube.objects import AnyObject, Undecodable
from gpuspawner.kube.store import ObjectStore
from tests.unit.makers.scripted import (
    FAST,
    ScriptedServer,
    Step,
    after,
    event,
    failure,
    obj,
    page,
    silence,
    watch,
)
from tests.unit.makers.views import until
from tests.waiting import UNIT_PATIENCE as PATIENCE

A = obj("a", namespace="jhub")
B = obj("b", version="2", namespace="jhub")


class Names(ObjectStore):
    """A store that raises an error for pods of some names.

    Attributes:
        told: How often its owner was notified.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.told = 0

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.keys("ServerPod")}

    def put(self, thing: AnyObject | Undecodable) -> None:
        name = thing.name if isinstance(thing, Undecodable) else thing.metadata.name
        if name in self.broken:
            raise KeyError(name)
        super().put(thing)

    def tell(self) -> None:
        self.told += 1


@asynccontextmanager
async def following(*script: Step) -> AsyncIterator[tuple[Following, Names, ScriptedServer]]:
    """Follow the pods of a scripted server; when the script is used up, it answers 503."""
    server, store = ScriptedServer(pods=list(script)), Names()
    async with server.serving():
        it = Following(servers_of("jhub"), store, server.configuration, store.tell, FAST)
        it.start()
        try:
            yield it, store, server
        finally:
            await it.stop()


def is_live(it: Following) -> bool:
    return isinstance(it.health(), Live)


async def test_a_store_is_live_once_the_first_list_is_complete() -> None:
    async with following(page(A, B), watch(hold=True)) as (it, store, _):
        assert isinstance(it.health(), Reading)
        assert await it.live(PATIENCE)

        assert is_live(it)
        assert store.names == {"a", "b"}


async def test_only_pods_that_have_not_ended_are_asked_for() -> None:
    async with following(page(), watch(hold=True)) as (it, _, server):
        await it.live(PATIENCE)

        selector = "status.phase!=Succeeded,status.phase!=Failed"
        assert server.queries[0]["fieldSelector"] == selector


async def test_every_change_reaches_the_store_and_tells_its_owner() -> None:
    later = asyncio.Event()
    changes = after(later, watch(event("ADDED", B), event("DELETED", A), hold=True))

    async with following(page(A), changes) as (it, store, _):
        await it.live(PATIENCE)
        told = store.told
        waiting = asyncio.create_task(it.changed(PATIENCE))
        await asyncio.sleep(0)
        later.set()

        assert await waiting
        await until(it, lambda: store.names == {"b"})
        assert store.told > told


async def test_after_a_gap_nothing_is_trusted_until_the_next_list_is_complete() -> None:
    """A count from what the hub saw before would be a guess."""
    gone = watch(event("ERROR", {"code": 410, "message": "too old"}))
    async with following(page(A), gone, *[failure(500)] * 1000) as (it, store, _):
        await until(it, lambda: isinstance(it.health(), Stale))

        assert store.names == {"a"}


async def test_who_waits_while_contact_is_lost_goes_on_when_it_is_back(monkeypatch) -> None:
    """A watch without news for long is stale as soon as it breaks; the next one is soon there."""
    monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.0)
    back = asyncio.Event()

    next_watch = watch(event("BOOKMARK", obj("", "9")), hold=True)

    async with following(page(), failure(500), after(back, next_watch)) as (it, *_):
        assert await it.live(PATIENCE)
        await until(it, lambda: isinstance(it.health(), Stale))

        assert not await it.live(0.05)
        waiting = asyncio.create_task(it.live(PATIENCE))
        await asyncio.sleep(0)
        assert not waiting.done()
        back.set()
        assert await waiting


async def test_nobody_waits_for_a_list_that_is_forbidden() -> None:
    async with following(*[failure(403, "no")] * 1000) as (it, *_):
        async with asyncio.timeout(PATIENCE):
            assert not await it.live(3600)

        health = it.health()
        assert isinstance(health, Forbidden)
        assert health.kinds == ("pods",)


async def test_a_list_that_fails_is_unreachable_until_a_later_one_succeeds() -> None:
    async with following(failure(500), failure(500), page(A), watch(hold=True)) as (it, *_):
        assert not await it.live(PATIENCE)
        assert isinstance(it.health(), Unreachable)

        await until(it, lambda: is_live(it))


async def test_the_first_list_is_waited_for_as_long_as_patience_lasts() -> None:
    async with following(silence()) as (it, *_):
        assert not await it.live(0.01)
        assert not await it.live(0)
        assert isinstance(it.health(), Reading)


async def test_an_error_of_the_store_is_logged_distrusted_and_reading_starts_again(caplog) -> None:
    broken = watch(event("ADDED", B), hold=True)
    async with following(page(A), broken, page(A, B), watch(hold=True)) as (it, store, _):
        await it.live(PATIENCE)
        store.broken = {"b"}
        await until(it, lambda: "starting again" in caplog.text)
        assert not is_live(it)
        store.broken = set()

        await until(it, lambda: is_live(it))
        assert store.names == {"a", "b"}


@pytest.mark.each_python
async def test_before_the_start_and_after_the_stop_nothing_is_trusted() -> None:
    async with following(page(A), watch(hold=True)) as (it, _, server):
        other = Following(servers_of("jhub"), Names(), server.configuration, backoff=FAST)
        assert isinstance(other.health(), Unreachable)
        assert not await other.live(PATIENCE)
        await other.stop()

        await it.live(PATIENCE)
        await it.stop()

        assert isinstance(it.health(), Unreachable)
        await it.stop()


@pytest.mark.each_python
async def test_a_second_start_does_nothing() -> None:
    async with following(page(A), watch(hold=True)) as (it, _, server):
        it.start()
        assert await it.live(PATIENCE)
        assert len([query for query in server.queries if "limit" in query]) == 1
