"""When a watcher asks again, and from where, under scripted faults."""

import asyncio
from dataclasses import replace

import pytest

from gpuspawner.cluster.changes import Changes
from gpuspawner.cluster.kinds import Kind
from gpuspawner.cluster.watch import Backoff, Lost, Signal, Watcher
from tests.unit.cluster.scripted import (
    FAST,
    ScriptedServer,
    Step,
    broken,
    cut,
    event,
    failure,
    obj,
    page,
    raw,
    watch,
)
from tests.unit.cluster.signals import THINGS, first, names, signals_of
from tests.waiting import PATIENCE


def gaps(*signals: Signal) -> list[bool]:
    """Return which of these losses of contact are gaps."""
    return [it.gap for it in signals if isinstance(it, Lost)]


class Contact(Changes):
    """Counts the calls of `tell`."""

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


@pytest.mark.parametrize("status", [401, 403, 429, 502, 503, 504])
async def test_an_api_stays_absent_while_a_starting_server_says_nothing_about_it(
    status: int,
) -> None:
    """Else, each restart of the API server would let nodes of an autoscaler come that isn't there.

    The next answer may take more than a minute.
    """
    server = ScriptedServer(things=[failure(404), *[failure(status)] * 2, page(obj("a"))])

    absent, *nothing, installed = await signals_of(server, 4)

    assert gaps(absent, *nothing) == [True, False, False]
    assert names(installed) == ["a"]


async def test_an_api_stays_absent_while_the_server_is_away() -> None:
    server = ScriptedServer(things=[failure(404), *[cut()] * 4, failure(404)])

    signals = await signals_of(server, 4, replace(FAST, doubt=0.0))

    assert gaps(*signals) == [True, False, False, True]


@pytest.mark.parametrize(
    "answer",
    [failure(500), raw(b"no list"), page(version=""), broken(), watch(b"{", hold=True)],
    ids=["an error", "unreadable", "no version", "broken", "silence"],
)
async def test_an_api_is_not_absent_any_more_once_the_server_answers_otherwise(
    answer: Step,
) -> None:
    """Karpenter may just have been installed, and work badly: its nodes may come."""
    server = ScriptedServer(things=[failure(404), answer, *[cut()] * 2, *[failure(503)] * 9])

    signals = await signals_of(server, 6, replace(FAST, page=0.1))

    assert all(gaps(*signals))


async def test_a_forbidden_api_is_not_absent_any_more_once_discovery_shows_it() -> None:
    kind = Kind("Pod", "/apis/karpenter.sh/v1/nodepools")
    scripts = {"nodepools": [failure(403)] * 9, "v1": [failure(404), *[raw(b"{}")] * 9]}
    async with ScriptedServer(**scripts).serving() as client:
        absent, forbidden = await first(Watcher(client, kind, FAST).signals(), 2)

    assert gaps(absent, forbidden) == [True, True]
    assert [it.error.status for it in (absent, forbidden) if isinstance(it, Lost)] == [404, 403]


async def test_a_list_of_which_only_a_part_has_come_is_not_that_of_an_absent_api() -> None:
    parts = [page(obj("a"), then="more"), cut(), cut()]
    server = ScriptedServer(things=[failure(404), *parts])

    *_, lost = await signals_of(server, 3)

    assert gaps(lost) == [True]


@pytest.mark.parametrize("status", [403, 503])
async def test_an_api_is_unknown_if_the_server_says_nothing_for_too_long(status: int) -> None:
    server = ScriptedServer(things=[failure(404), failure(status), failure(status)])

    signals = await signals_of(server, 3, replace(FAST, doubt=0.0))

    assert gaps(*signals) == [True, True, True]


async def test_an_absent_api_is_not_asked_for_all_the_time(waits: list[int]) -> None:
    await signals_of(ScriptedServer(things=[failure(404)] * 5), 5)

    assert waits[:4] == [1, 2, 3, 4]


async def test_after_an_outage_the_first_answer_begins_the_waits_anew(waits: list[int]) -> None:
    server = ScriptedServer(things=[*[cut()] * 6, *[failure(500)] * 2, page()])

    await signals_of(server, 6)

    assert waits[:5] == [1, 2, 3, 1, 2]


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
        while not again.done():
            contact.tell()
            await asyncio.sleep(0)

        assert names(await again) == ["a"]


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
