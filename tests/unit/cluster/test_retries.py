"""When a watcher asks again, and from where, under scripted faults."""

import asyncio

import pytest
from msgspec.structs import replace

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.list_watch import Lost, Watcher
from gpuspawner.cluster.retries import Backoff, Retries
from gpuspawner.cluster.wakeups import Contact
from tests.unit.makers.scripted import FAST, ScriptedServer, cut, event, failure, obj, page, watch
from tests.unit.makers.signals import THINGS, first, names, signals_of


@pytest.fixture
def waits(monkeypatch) -> list[int]:
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


@pytest.mark.parametrize("status", [503, 429], ids=["away, as its proxy says", "too busy"])
async def test_a_server_that_is_away_or_too_busy_is_asked_for_no_new_list(status) -> None:
    """A list costs a busy server much more than a watch."""
    change = watch(event("ADDED", obj("a", "8")), hold=True)
    away, few_errors = [failure(status)] * 12, [failure(500)] * 2
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


async def test_what_is_forbidden_after_an_outage_is_asked_for_again_soon(waits) -> None:
    forbidden = [failure(403, "no")] * 2
    server = ScriptedServer(things=[page(), *[failure(500)] * 6, *forbidden, watch(hold=True)])

    await signals_of(server, 10)

    assert waits[:7] == [1, 2, 3, 4, 5, 6, 1]


async def test_a_watch_that_worked_until_it_broke_is_opened_again_soon(waits, monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.cluster.list_watch._SHORTEST_WATCH", 0.05)
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


async def test_what_may_be_listed_but_not_watched_is_listed_seldom() -> None:
    """A role may grant `list` without `watch`, and a list of all pods has many megabytes."""
    in_vain = [page(), failure(403, "no")]
    server = ScriptedServer(things=in_vain * 3)

    signals = await signals_of(server, 9, replace(FAST, doubt=0.0))

    lost = [it for it in signals if isinstance(it, Lost)]
    assert [it.gap for it in lost] == [True] * 3
    assert [it.error.retry_after for it in lost] == [0, *[10 * FAST.last_retry] * 2]


async def test_a_watch_that_is_forbidden_once_after_a_list_is_opened_again_soon() -> None:
    """One of several API servers has just started, and forbids what the others allow."""
    change = watch(event("ADDED", obj("b", "8")), hold=True)
    server = ScriptedServer(things=[failure(403), page(version="7"), failure(403), change])

    signals = await signals_of(server, 5)

    lost = [it for it in signals if isinstance(it, Lost)]
    assert [(it.gap, it.error.retry_after) for it in lost] == [(True, 0), (False, 0)]
    assert server.queries[-1]["resourceVersion"] == "7"


async def test_what_is_forbidden_after_a_list_that_led_to_no_watch_is_asked_for_as_ever() -> None:
    refused = failure(403)
    server = ScriptedServer(things=[page(), refused, page(), *[refused] * 3])

    signals = await signals_of(server, 8, replace(FAST, doubt=0.0))

    waits = [it.error.retry_after for it in signals if isinstance(it, Lost)]
    assert waits == [0, 10 * FAST.last_retry, 0, 0]


async def test_an_absent_api_is_not_asked_for_all_the_time(waits) -> None:
    await signals_of(ScriptedServer(things=[failure(404)] * 5), 5)

    assert waits[:4] == [1, 2, 3, 4]


async def test_after_an_outage_the_first_answer_begins_the_waits_anew(waits) -> None:
    server = ScriptedServer(things=[*[cut()] * 6, *[failure(500)] * 2, page()])

    await signals_of(server, 6)

    assert waits[:5] == [1, 2, 3, 1, 2]


async def test_a_wake_shortens_no_waits_for_what_is_forbidden(waits) -> None:
    """It is asked for once more, and then as seldom as before."""
    contact = Contact()
    server = ScriptedServer(things=[failure(403)] * 6)
    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST, contact).signals()
        await first(signals, 3)
        contact.wake()
        await first(signals, 2)

    assert waits == [1, 2, 3, 4]


async def test_the_waits_get_longer_if_a_server_is_away_at_every_other_request(waits) -> None:
    """As behind a load balancer with a backend that is away."""
    contact = Contact()
    server = ScriptedServer(things=[failure(503), failure(500)] * 4)

    async with server.serving() as client:
        await first(Watcher(client, THINGS, FAST, contact).signals(), 8)

    assert waits == [1, 1, 2, 3, 4, 5, 6]
    assert contact.wakes == 1


async def test_the_waits_get_longer_if_an_api_comes_and_goes(waits) -> None:
    await signals_of(ScriptedServer(things=[failure(404), failure(500)] * 4), 8)

    assert waits == [1, 1, 2, 3, 4, 5, 6]


async def test_after_a_success_the_waits_may_begin_anew_once_more(waits) -> None:
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


async def test_a_wait_that_the_server_asks_for_is_cut_short_only_beyond_that(clock) -> None:
    contact, began = Contact(), clock.now
    retries = Retries(Backoff(first_retry=3600, last_retry=3600), contact)
    waiting = asyncio.ensure_future(retries.wait(RequestError("busy", 429, retry_after=30)))
    await asyncio.sleep(0)
    contact.wake()
    await waiting

    assert clock.now - began == pytest.approx(30)


@pytest.mark.parametrize(
    ("status", "longest"), [(403, 80), (404, 80), (401, 8), (429, 8), (500, 8), (None, 8)]
)
async def test_only_what_is_forbidden_or_absent_is_asked_for_seldom(clock, status, longest) -> None:
    """What only fails is unknown meanwhile, long after nodes and pods are known again."""
    contact, error, began = Contact(), RequestError("no", status), clock.now
    retries = Retries(Backoff().unhurried(), contact)
    for _ in range(20):
        retries.fail(is_away=error.is_away)

    await retries.wait(error)

    assert longest / 4 <= clock.now - began <= longest


def test_retries_come_later_and_later_and_never_in_step() -> None:
    backoff = Backoff(first_retry=1, last_retry=8)

    for failures, longest in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (10_000, 8)]:
        waits = {backoff.before_retry(failures) for _ in range(20)}
        assert all(longest / 4 <= wait <= longest for wait in waits)
        assert len(waits) > 1
