"""When a watcher asks again, and from where, under scripted faults."""

import asyncio
from dataclasses import replace

import pytest

from gpuspawner.cluster.changes import Changes
from gpuspawner.cluster.watch import Backoff, Lost, Watcher
from tests.unit.cluster.scripted import (
    FAST,
    ScriptedServer,
    cut,
    event,
    failure,
    obj,
    page,
    watch,
)
from tests.unit.cluster.signals import THINGS, first, names, signals_of
from tests.waiting import PATIENCE


class Contact(Changes):
    """Counts how often it is told."""

    told = 0

    def tell(self) -> None:
        self.told += 1
        super().tell()


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


@pytest.mark.parametrize("status", [403, 429, 503, 504])
async def test_an_api_stays_absent_while_a_starting_server_says_nothing_about_it(
    status: int,
) -> None:
    """Else, each restart of the API server would let nodes of an autoscaler come that isn't there.

    The next answer may take more than a minute.
    """
    server = ScriptedServer(things=[failure(404), *[failure(status)] * 2, page(obj("a"))])

    absent, *nothing, installed = await signals_of(server, 4)

    assert isinstance(absent, Lost)
    assert absent.gap
    assert [it.gap for it in nothing if isinstance(it, Lost)] == [False] * 2
    assert names(installed) == ["a"]


async def test_an_api_stays_absent_while_the_server_is_away() -> None:
    server = ScriptedServer(things=[failure(404), watch(hold=True), failure(404)])

    signals = await signals_of(server, 3, replace(FAST, page=0.1))

    assert [it.gap for it in signals if isinstance(it, Lost)] == [True, False, True]


@pytest.mark.parametrize(("status", "doubt"), [(500, 10.0), (403, 0.0), (503, 0.0)])
async def test_an_api_is_unknown_once_the_server_answers_otherwise_or_for_too_long(
    status: int, doubt: float
) -> None:
    server = ScriptedServer(things=[failure(404), failure(status), failure(status)])

    signals = await signals_of(server, 3, replace(FAST, doubt=doubt))

    assert [it.gap for it in signals if isinstance(it, Lost)] == [True, True, True]


async def test_when_the_server_is_back_for_one_kind_all_ask_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an outage of a minute, each of them would wait for seconds."""
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact = Changes()
    server = ScriptedServer(things=[cut(), cut(), page(obj("a"))])
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        assert isinstance(await anext(signals), Lost)

        again = asyncio.ensure_future(anext(signals))
        told = asyncio.ensure_future(contact.next(PATIENCE))
        while not again.done():
            contact.tell()
            await asyncio.sleep(0)

        assert names(await again) == ["a"]
        assert await told


async def test_only_who_was_out_of_reach_tells_the_others_that_the_server_is_back() -> None:
    """Else, watches that end at once would let each other ask again without a pause."""
    contact = Contact()
    ends_at_once = [page(), *[watch()] * 3, failure(500), watch(), cut(), cut(), failure(403)]
    server = ScriptedServer(things=ends_at_once)

    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 8)
        assert contact.told == 0
        await first(signals, 1)

    assert contact.told == 1


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
