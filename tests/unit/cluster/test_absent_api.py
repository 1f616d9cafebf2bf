"""When an API counts as absent, under scripted faults."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from aiohttp import web
from msgspec.structs import replace

from gpuspawner.cluster.kinds import Kind
from gpuspawner.cluster.watch import Lost, Signal, Watcher
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
    silence,
    watch,
)
from tests.unit.cluster.signals import first, names, signals_of

NODE_POOLS = Kind("Pod", "/apis/karpenter.sh/v1/nodepools")


def gaps(*signals: Signal) -> list[bool]:
    """Return which of these losses of contact are gaps."""
    return [it.gap for it in signals if isinstance(it, Lost)]


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


@pytest.mark.parametrize(
    "away",
    [[cut()] * 4, [silence()] * 2, *([failure(status)] * 2 for status in (502, 503, 504))],
    ids=["cut", "silent", "502", "503", "504"],
)
async def test_an_api_stays_absent_while_the_server_is_away(away: list[Step]) -> None:
    """A proxy answers for a server that is away; a host that is off answers nothing."""
    server = ScriptedServer(things=[failure(404), *away, failure(404)])

    signals = await signals_of(server, 4, replace(FAST, page=0.5, doubt=0.0))

    assert gaps(*signals) == [True, False, False, True]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, Step], Step]:
    """Return a function that lets a step of a script come so many seconds later."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("gpuspawner.cluster.watch.time", clock)

    def coming(seconds: float, step: Step) -> Step:
        async def come(request: web.Request) -> web.StreamResponse:
            clock.now += seconds
            return await step(request)

        return come

    return coming


async def test_an_outage_is_no_doubt_about_an_api(
    later: Callable[[float, Step], Step],
) -> None:
    """The answers before and after it say nothing, but for a moment only."""
    outage = [failure(429), later(60, failure(503)), later(60, failure(403))]
    server = ScriptedServer(things=[failure(404), *outage, later(11, failure(403))])

    signals = await signals_of(server, 5)

    assert gaps(*signals) == [True, False, False, False, True]


async def test_what_was_forbidden_before_a_watch_worked_is_no_doubt(
    later: Callable[[float, Step], Step],
) -> None:
    works = watch(event("ADDED", obj("a", "2")))
    forbidden = [failure(403), works, later(60, failure(403)), later(11, failure(403))]

    signals = await signals_of(ScriptedServer(things=[page(), *forbidden]), 6)

    assert gaps(*signals) == [False, False, True]


@pytest.mark.parametrize("away", [silence(), failure(503)], ids=["silence", "a proxy's"])
async def test_an_api_whose_collection_never_answers_is_not_absent_once_discovery_shows_it(
    away: Step,
) -> None:
    """A webhook of its own may hang; discovery asks none."""
    scripts = {"nodepools": [failure(404), away, away], "v1": [failure(404), raw(b"{}")]}
    async with ScriptedServer(**scripts).serving() as client:
        watcher = Watcher(client, NODE_POOLS, replace(FAST, page=0.5))
        _, still_absent, there = await first(watcher.signals(), 3)

    assert isinstance(still_absent, Lost)
    assert isinstance(there, Lost)
    assert still_absent.error.status == 404
    assert there.gap
    assert there.error.status != 404


async def test_an_api_that_is_there_is_not_looked_for_in_discovery_during_an_outage() -> None:
    scripts = {"nodepools": [page(), *[failure(503)] * 3], "v1": [raw(b"{}")]}
    server = ScriptedServer(**scripts)
    async with server.serving() as client:
        await first(Watcher(client, NODE_POOLS, FAST).signals(), 5)

    assert len(server.scripts["v1"]) == 1


async def test_an_api_whose_collection_never_answers_is_unknown_if_discovery_fails() -> None:
    scripts = {"nodepools": [failure(404), silence()], "v1": [failure(500)]}
    async with ScriptedServer(**scripts).serving() as client:
        watcher = Watcher(client, NODE_POOLS, replace(FAST, page=0.5))
        _, unknown = await first(watcher.signals(), 2)

    assert gaps(unknown) == [True]


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

    signals = await signals_of(server, 6, replace(FAST, page=0.5))

    assert all(gaps(*signals))


async def test_a_forbidden_api_is_not_absent_any_more_once_discovery_shows_it() -> None:
    scripts = {"nodepools": [failure(403)] * 9, "v1": [failure(404), *[raw(b"{}")] * 9]}
    async with ScriptedServer(**scripts).serving() as client:
        absent, forbidden = await first(Watcher(client, NODE_POOLS, FAST).signals(), 2)

    assert gaps(absent, forbidden) == [True, True]
    assert [it.error.status for it in (absent, forbidden) if isinstance(it, Lost)] == [404, 403]


async def test_a_list_of_which_only_a_part_has_come_is_not_that_of_an_absent_api() -> None:
    parts = [page(obj("a"), then="more"), cut(), cut()]
    server = ScriptedServer(things=[failure(404), *parts])

    *_, lost = await signals_of(server, 3)

    assert gaps(lost) == [True]


@pytest.mark.parametrize(
    "nothing",
    [failure(401), failure(403), failure(503, **{"Retry-After": "1"})],
    ids=["401", "403", "503 of the server itself"],
)
async def test_an_api_is_unknown_if_the_server_says_nothing_for_too_long(nothing: Step) -> None:
    server = ScriptedServer(things=[failure(404), nothing, nothing])

    signals = await signals_of(server, 3, replace(FAST, doubt=0.0))

    assert gaps(*signals) == [True, True, True]
