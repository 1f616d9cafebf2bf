"""Waking tasks at the next change, and the watchers of an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from aiohttp import web
from msgspec.structs import replace

from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.list_watch import Lost, Signal, Watcher
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.wakeups import Changes, Contact
from tests.unit.makers.scripted import (
    FAST,
    ScriptedServer,
    cut,
    event,
    failure,
    obj,
    page,
    silence,
    watch,
)
from tests.unit.makers.signals import THINGS, first, names
from tests.waiting import UNIT_PATIENCE as PATIENCE

pytestmark = pytest.mark.each_python


async def test_every_task_that_waits_hears_of_the_next_change() -> None:
    changes = Changes()
    waiting = [asyncio.create_task(changes.next(PATIENCE)) for _ in range(3)]
    await asyncio.sleep(0)

    changes.tell()

    assert await asyncio.gather(*waiting) == [True] * 3


@pytest.mark.usefixtures("clock")
async def test_a_change_before_the_wait_is_no_next_one() -> None:
    changes = Changes()
    changes.tell()

    assert not await changes.next(60)


async def test_a_change_between_the_call_and_its_first_wait_is_heard() -> None:
    changes = Changes()
    waiting = asyncio.ensure_future(changes.next(PATIENCE))
    asyncio.get_running_loop().call_soon(changes.tell)

    assert await waiting


async def test_a_wait_whose_time_is_already_up_ends_at_once() -> None:
    assert not await Changes().next(-1.0)


async def woken(contact: Contact, wakes: int) -> int:
    """Wait until there were more than so many wakes; return how many."""
    async with asyncio.timeout(PATIENCE):
        await contact.wait(wakes, PATIENCE * 10)
    return contact.wakes


async def test_a_wake_is_for_all_that_wait_and_for_who_waits_for_it_later() -> None:
    contact = Contact()
    waiting = [asyncio.ensure_future(woken(contact, 0)) for _ in range(3)]
    await asyncio.sleep(0)

    contact.wake()

    assert await asyncio.gather(*waiting, woken(contact, 0)) == [1, 1, 1, 1]


async def test_a_wake_just_after_another_comes_later_and_only_once(clock) -> None:
    """Behind a load balancer, the first answer may have come from the only server that works."""
    contact, began = Contact(), clock.now
    for _ in range(3):
        contact.wake()
    assert contact.wakes == 1

    assert await woken(contact, 1) == 2
    assert clock.now - began == pytest.approx(8)
    await contact.wait(2, 3600)

    assert contact.wakes == 2


async def test_a_wait_without_a_wake_ends_in_time(clock) -> None:
    contact, began = Contact(), clock.now

    await contact.wait(0, 60)

    assert contact.wakes == 0
    assert clock.now - began == pytest.approx(60)


class Awaited(Contact):
    """Tells when a watcher waits for a wake."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited = asyncio.Event()

    async def wait(self, wakes: int, seconds: float) -> None:
        if self.wakes <= wakes:
            self._awaited.set()
        await super().wait(wakes, seconds)

    async def is_awaited_before(self, signal: Awaitable[Signal]) -> bool:
        """Whether a watcher begins to wait before this signal of it comes."""
        coming, waiting = asyncio.ensure_future(signal), asyncio.create_task(self._awaited.wait())
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({coming, waiting}, return_when=asyncio.FIRST_COMPLETED)
        has_come = coming.done()
        for it in (coming, waiting):
            it.cancel()
        await asyncio.wait({coming, waiting})
        return not has_come


@pytest.fixture
def patient(monkeypatch) -> None:
    """Let watchers wait longer than any test, unless they are woken."""
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)


@pytest.mark.parametrize(
    "away", [[cut(), cut()], [silence()], [failure(503)]], ids=["cut", "silence", "a proxy's"]
)
@pytest.mark.usefixtures("patient")
async def test_when_the_server_is_back_for_one_kind_all_ask_again(away) -> None:
    """After an outage of a minute, each of them would wait for seconds."""
    contact = Contact()
    server = ScriptedServer(things=[*away, page(obj("a"))])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, replace(FAST, page=0.5), contact).signals()
        assert isinstance(await anext(signals), Lost)

        again = asyncio.ensure_future(anext(signals))
        await asyncio.sleep(0)
        contact.wake()

        async with asyncio.timeout(PATIENCE):
            assert names(await again) == ["a"]


@pytest.mark.usefixtures("patient")
async def test_who_has_failed_just_when_the_server_came_back_asks_again_at_once() -> None:
    contact = Contact()

    async def fail_late(request: web.Request) -> web.StreamResponse:
        contact.wake()  # for another kind, the server is back
        return await failure(503)(request)

    server = ScriptedServer(things=[fail_late, page(obj("a"))])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        _, listed = await first(signals, 2)

    assert names(listed) == ["a"]


@pytest.mark.usefixtures("patient")
async def test_who_was_woken_once_waits_after_further_failures(monkeypatch) -> None:
    """Else, it would ask a server that is away again and again without a pause."""
    monkeypatch.setattr("gpuspawner.cluster.wakeups._BETWEEN_WAKES", 0.0)
    contact = Awaited()
    server = ScriptedServer(things=[page(), failure(503), failure(503), page()])
    async with server.serving() as client:
        contact.wake()
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 3)
        contact.wake()
        await first(signals, 1)

        assert await contact.is_awaited_before(anext(signals))
    assert len(server.queries) == 3


async def test_one_outage_wakes_all_only_once(monkeypatch) -> None:
    """A second wake would let those ask again that are forbidden or absent for good."""
    monkeypatch.setattr("gpuspawner.cluster.wakeups._BETWEEN_WAKES", 0.0)
    contact, back = Contact(), [failure(503), page(), watch(hold=True)]
    server = ScriptedServer(things=list(back), others=list(back))
    patient = replace(FAST, first_retry=PATIENCE, last_retry=PATIENCE, silence=PATIENCE)
    async with server.serving() as client:
        things, others = (
            Watcher(client, ObjectKind("Pod", path), patient, contact).signals()
            for path in ("/things", "/others")
        )
        await first(things, 1)
        await first(others, 1)
        contact.wake()
        await first(things, 2)
        await first(others, 2)

    assert contact.wakes == 1


async def test_who_is_answered_after_another_wakes_nobody_again(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.cluster.wakeups._BETWEEN_WAKES", 0.0)
    contact = Contact()

    async def answer_second(request: web.Request) -> web.StreamResponse:
        contact.wake()  # another was answered while this request was on its way
        return await page()(request)

    server = ScriptedServer(things=[failure(503), answer_second])
    async with server.serving() as client:
        await first(Watcher(client, THINGS, FAST, contact).signals(), 3)

    assert contact.wakes == 1


@pytest.mark.usefixtures("patient")
async def test_a_watch_that_breaks_is_not_opened_again_at_once_because_of_an_old_wake() -> None:
    """Many hubs must not reach a restarting API server in step."""
    contact = Awaited()

    async def wake(request: web.Request) -> web.StreamResponse:
        contact.wake()
        return await watch(event("ADDED", obj("a", "2")), hold=True)(request)

    server = ScriptedServer(things=[page(), wake])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, replace(FAST, silence=0.2), contact).signals()
        await first(signals, 4)

        assert await contact.is_awaited_before(anext(signals))


@pytest.mark.parametrize(
    "back",
    [
        [failure(503), page()],
        [page(), failure(503), watch(hold=True)],
        [failure(404), page()],  # of the core API, which no server lacks
    ],
    ids=["list", "watch", "proxy"],
)
async def test_a_success_after_an_outage_wakes_the_others(back) -> None:
    contact, server = Contact(), ScriptedServer(things=list(back))
    async with server.serving() as client:
        watcher = Watcher(client, THINGS, replace(FAST, silence=PATIENCE * 10), contact)

        async def follow() -> None:
            async for _ in watcher.signals():
                pass

        following = asyncio.ensure_future(follow())
        await contact.wait(0, PATIENCE)
        following.cancel()
        await asyncio.wait({following})

    assert contact.wakes == 1


async def test_only_who_was_out_of_reach_tells_the_others_that_the_server_is_back() -> None:
    """Else, watches that end at once would let each other ask again without a pause."""
    contact = Contact()
    ends_at_once = [page(), *[watch()] * 3, failure(500), watch(), cut(), cut(), failure(403)]
    server = ScriptedServer(things=ends_at_once)

    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 8)
        assert contact.wakes == 0
        await first(signals, 1)

    assert contact.wakes == 1
