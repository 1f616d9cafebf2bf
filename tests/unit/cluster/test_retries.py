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


FORBIDDEN, ABSENT, FAILS = failure(403), failure(404), failure(500)
WORKS, GOES_ON = (watch(event("ADDED", obj("a", version))) for version in "23")
WAITS = {
    "what is forbidden after an outage is asked for again soon": (
        [page(), *[FAILS] * 6, *[FORBIDDEN] * 2, watch(hold=True)], 10, [1, 2, 3, 4, 5, 6, 1]
    ),
    "an absent API isn't asked for all the time": ([ABSENT] * 5, 5, [1, 2, 3, 4]),
    "the first answer after an outage begins the waits anew": (
        [*[cut()] * 6, *[FAILS] * 2, page()], 6, [1, 2, 3, 1, 2]
    ),
    "they get longer if an API comes and goes": ([ABSENT, FAILS] * 4, 8, [1, 1, 2, 3, 4, 5, 6]),
    "after a success they may begin anew once more": (
        [FAILS, FAILS, FORBIDDEN, page(), WORKS, FAILS, FAILS, FORBIDDEN, GOES_ON],
        10,
        [1, 2, 1, 1, 2, 1],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("script", "count", "expected"), WAITS.values(), ids=WAITS)
async def test_the_waits_depend_on_what_the_server_said_before(
    script, count, expected, waits
) -> None:
    await signals_of(ScriptedServer(things=list(script)), count)

    assert waits[: len(expected)] == expected


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


NO_DOUBT = replace(FAST, doubt=0.0)
SELDOM = 10 * FAST.last_retry
FORBIDDEN_WATCH = {
    "what may be listed but not watched is listed seldom": (
        [page(), FORBIDDEN] * 3, NO_DOUBT, 9, [(True, 0), (True, SELDOM), (True, SELDOM)]
    ),
    "a watch that is forbidden once after a list is opened again soon": (
        [FORBIDDEN, page(), FORBIDDEN, WORKS], FAST, 5, [(True, 0), (False, 0)]
    ),
    "what is forbidden after a list that led to no watch is asked for as ever": (
        [page(), FORBIDDEN, page(), *[FORBIDDEN] * 3],
        NO_DOUBT,
        8,
        [(True, 0), (True, SELDOM), (True, 0), (True, 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("script", "backoff", "count", "lost"), FORBIDDEN_WATCH.values(), ids=FORBIDDEN_WATCH
)
async def test_a_list_costs_too_much_to_ask_for_it_again_and_again(
    script, backoff, count, lost
) -> None:
    """A role may grant `list` without `watch`; or one of several API servers has just started."""
    signals = await signals_of(ScriptedServer(things=list(script)), count, backoff)

    assert [(it.gap, it.error.retry_after) for it in signals if isinstance(it, Lost)] == lost


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
