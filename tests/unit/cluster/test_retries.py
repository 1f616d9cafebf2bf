"""When a watcher asks again, and from where, under scripted faults."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web

from gpuspawner.cluster.contact import Contact
from gpuspawner.cluster.kinds import Kind
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.watch import Lost, Watcher
from tests.unit.cluster.scripted import (
    FAST,
    ScriptedServer,
    Step,
    cut,
    event,
    failure,
    obj,
    page,
    silence,
    watch,
)
from tests.unit.cluster.signals import THINGS, first, names, signals_of
from tests.waiting import PATIENCE


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many failures in a row each retry comes; it comes at once."""
    asked: list[int] = []

    def before_retry(_: Backoff, failures: int) -> float:
        asked.append(failures)
        return 0.0

    monkeypatch.setattr(Backoff, "before_retry", before_retry)
    return asked


async def test_after_ten_failures_the_watcher_lists_again() -> None:
    unknown = event("ERROR", {"kind": "Status", "code": 504, "message": "Too large"})
    refusals = [*[watch(unknown)] * 5, *[failure(500)] * 5]
    listed_again = page(obj("a"), version="3")
    server = ScriptedServer(things=[page(version="7"), *refusals, listed_again, failure(500)])

    signals = await signals_of(server, 15)

    lost = [signal for signal in signals if isinstance(signal, Lost)]
    assert [signal.gap for signal in lost] == [False] * 9 + [True, False]
    assert names(signals[12]) == ["a"]


async def test_a_proxy_in_front_of_a_server_that_is_away_leads_to_no_new_list() -> None:
    change = watch(event("ADDED", obj("a", "8")), hold=True)
    away, few_errors = [failure(503)] * 12, [failure(500)] * 2
    server = ScriptedServer(things=[page(version="7"), *away, *few_errors, change])

    *_, added = await signals_of(server, 17)

    assert names(added) == ["ADDED a"]
    assert server.queries[-1]["resourceVersion"] == "7"


async def test_what_is_forbidden_for_a_moment_is_watched_on() -> None:
    """An API server that has just started forbids everything until it has read RBAC's objects."""
    change = watch(event("ADDED", obj("a", "8")), hold=True)
    server = ScriptedServer(things=[page(version="7"), *[failure(403, "no")] * 3, change])

    *_, first, second, third, added = await signals_of(server, 6)

    assert [it.gap for it in (first, second, third) if isinstance(it, Lost)] == [False] * 3
    assert names(added) == ["ADDED a"]
    assert server.queries[-1]["resourceVersion"] == "7"


async def test_what_is_forbidden_after_an_outage_is_asked_for_again_soon(waits: list[int]) -> None:
    forbidden = [failure(403, "no")] * 2
    server = ScriptedServer(things=[page(), *[failure(500)] * 6, *forbidden, watch(hold=True)])

    await signals_of(server, 10)

    assert waits[:7] == [1, 2, 3, 4, 5, 6, 1]


async def test_a_watch_that_worked_until_it_broke_is_opened_again_soon(
    waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.watch._SHORTEST_WATCH", 0.05)
    server = ScriptedServer(things=[page(), *[failure(500)] * 5, watch(hold=True)])

    await signals_of(server, 9, replace(FAST, silence=0.1))

    assert waits == [1, 2, 3, 4, 5, 1]


async def test_after_a_right_was_withdrawn_everything_is_listed_again() -> None:
    server = ScriptedServer(things=[page(), failure(403, "no"), page(obj("a"))])

    _, _, lost, again = await signals_of(server, 4, replace(FAST, doubt=0.0))

    assert isinstance(lost, Lost)
    assert (lost.error.status, lost.gap) == (403, True)
    assert "no" in str(lost.error)
    assert names(again) == ["a"]


async def test_an_absent_api_is_not_asked_for_all_the_time(waits: list[int]) -> None:
    await signals_of(ScriptedServer(things=[failure(404)] * 5), 5)

    assert waits[:4] == [1, 2, 3, 4]


async def test_after_an_outage_the_first_answer_begins_the_waits_anew(waits: list[int]) -> None:
    server = ScriptedServer(things=[*[cut()] * 6, *[failure(500)] * 2, page()])

    await signals_of(server, 6)

    assert waits[:5] == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    "away", [[cut(), cut()], [silence()], [failure(503)]], ids=["cut", "silence", "a proxy's"]
)
async def test_when_the_server_is_back_for_one_kind_all_ask_again(
    away: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage of a minute, each of them would wait for seconds."""
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
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


async def test_who_has_failed_just_when_the_server_came_back_asks_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact = Contact()

    async def fail_late(request: web.Request) -> web.StreamResponse:
        contact.wake()  # for another kind, the server is back
        return await failure(503)(request)

    server = ScriptedServer(things=[fail_late, page(obj("a"))])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        _, listed = await first(signals, 2)

    assert names(listed) == ["a"]


async def test_who_was_woken_once_waits_after_further_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else, it would ask a server that is away again and again without a pause."""
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact = Contact()
    server = ScriptedServer(things=[page(), failure(503), failure(503), page()])
    async with server.serving() as client:
        contact.wake()
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 3)
        contact._wake()
        await first(signals, 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(signals), 0.1)

    assert len(server.queries) == 3


async def test_one_outage_wakes_all_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second wake would let those ask again that are forbidden or absent for good."""
    monkeypatch.setattr("gpuspawner.cluster.contact._BETWEEN_WAKES", 0.0)
    contact, back = Contact(), [failure(503), page(), watch(hold=True)]
    server = ScriptedServer(things=list(back), others=list(back))
    patient = replace(FAST, first_retry=PATIENCE, last_retry=PATIENCE, silence=PATIENCE)
    async with server.serving() as client:
        things, others = (
            Watcher(client, Kind("Pod", path), patient, contact).signals()
            for path in ("/things", "/others")
        )
        await first(things, 1)
        await first(others, 1)
        contact.wake()
        await first(things, 2)
        await first(others, 2)

    assert contact.wakes == 1


async def test_who_is_answered_after_another_wakes_nobody_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpuspawner.cluster.contact._BETWEEN_WAKES", 0.0)
    contact = Contact()

    async def answer_second(request: web.Request) -> web.StreamResponse:
        contact.wake()  # another was answered while this request was on its way
        return await page()(request)

    server = ScriptedServer(things=[failure(503), answer_second])
    async with server.serving() as client:
        await first(Watcher(client, THINGS, FAST, contact).signals(), 3)

    assert contact.wakes == 1


async def test_a_wake_shortens_no_waits_for_what_is_forbidden(waits: list[int]) -> None:
    """It is asked for once more, and then as seldom as before."""
    contact = Contact()
    server = ScriptedServer(things=[failure(403)] * 6)
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 3)
        contact.wake()
        await first(signals, 2)

    assert waits == [1, 2, 3, 4]


async def test_a_watch_that_breaks_is_not_opened_again_at_once_because_of_an_old_wake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many hubs must not reach a restarting API server in step."""
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact = Contact()

    async def wake(request: web.Request) -> web.StreamResponse:
        contact.wake()
        return await watch(event("ADDED", obj("a", "2")), hold=True)(request)

    server = ScriptedServer(things=[page(), wake])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, replace(FAST, silence=0.2), contact).signals()
        await first(signals, 4)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(signals), 0.2)


async def test_a_wait_that_the_server_asks_for_is_cut_short_only_beyond_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact, began = Contact(), asyncio.get_running_loop().time()
    server = ScriptedServer(things=[failure(429, **{"Retry-After": "1"}), page()])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 1)
        contact.wake()
        await first(signals, 1)

    assert asyncio.get_running_loop().time() - began >= 1


@pytest.mark.parametrize(
    "back",
    [[failure(503), page()], [page(), failure(503), watch(hold=True)]],
    ids=["list", "watch"],
)
async def test_a_success_after_an_outage_wakes_the_others(back: list[Step]) -> None:
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


async def test_the_waits_get_longer_if_a_server_is_away_at_every_other_request(
    waits: list[int],
) -> None:
    """As behind a load balancer with a backend that is away."""
    contact = Contact()
    server = ScriptedServer(things=[failure(503), failure(500)] * 4)

    async with server.serving() as client:
        await first(Watcher(client, THINGS, FAST, contact).signals(), 8)

    assert waits == [1, 1, 2, 3, 4, 5, 6]
    assert contact.wakes == 1


async def test_the_waits_get_longer_if_an_api_comes_and_goes(waits: list[int]) -> None:
    await signals_of(ScriptedServer(things=[failure(404), failure(500)] * 4), 8)

    assert waits == [1, 1, 2, 3, 4, 5, 6]


async def test_after_a_success_the_waits_may_begin_anew_once_more(waits: list[int]) -> None:
    outage = [failure(500), failure(500), failure(403)]
    works, goes_on = (watch(event("ADDED", obj("a", version))) for version in "23")
    server = ScriptedServer(things=[*outage, page(), works, *outage, goes_on])

    await signals_of(server, 10)

    assert waits == [1, 2, 1, 1, 2, 1]


async def test_a_watch_that_ends_at_once_without_an_event_is_a_failure() -> None:
    server = ScriptedServer(things=[page(), watch()])

    *_, lost = await signals_of(server, 3)

    assert isinstance(lost, Lost)


async def test_a_retry_after_is_obeyed() -> None:
    waits = failure(429, "slow down", **{"Retry-After": "1"})
    server = ScriptedServer(things=[waits, page()])
    began = asyncio.get_running_loop().time()

    await signals_of(server, 2)

    assert asyncio.get_running_loop().time() - began >= 1


def test_retries_come_later_and_later_and_never_in_step() -> None:
    backoff = Backoff(first_retry=1, last_retry=8)

    for failures, longest in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (10_000, 8)]:
        waits = {backoff.before_retry(failures) for _ in range(20)}
        assert all(longest / 4 <= wait <= longest for wait in waits)
        assert len(waits) > 1
