"""Watching under scripted faults; tests/cluster follows a real API server."""

from collections.abc import Callable

import pytest
from aiohttp import web
from msgspec.structs import replace

from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.list_watch import Confirmed, ListEnd, Lost, Page, Signal, Watcher
from gpuspawner.cluster.retries import Backoff
from gpuspawner.kube.objects import Undecodable
from tests.unit.makers.clocks import Clock
from tests.unit.makers.scripted import (
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
from tests.unit.makers.signals import THINGS, first, names, signals_of


async def test_a_list_comes_in_pages_and_ends_with_listed() -> None:
    server = ScriptedServer(things=[page(obj("a"), then="more"), page(obj("b"))])

    one, two, end = await signals_of(server, 3)

    assert (names(one), names(two), end) == (["a"], ["b"], ListEnd())
    assert (one.first, two.first) == (True, False)
    assert server.queries[1]["continue"] == "more"
    assert server.queries[0]["limit"] == "500"


async def test_items_that_are_null_are_an_empty_list() -> None:
    server = ScriptedServer(things=[raw(b'{"metadata":{"resourceVersion":"1"},"items":null}')])

    assert await signals_of(server, 2) == [Page([], first=True), ListEnd()]


async def test_after_a_watch_ends_the_next_one_starts_at_its_last_version() -> None:
    first = watch(event("ADDED", obj("a", "42")), event("BOOKMARK", obj("", "50")))
    second = watch(event("DELETED", obj("a", "51")), hold=True)
    server = ScriptedServer(things=[page(version="41"), first, second])

    *_, added, deleted = await signals_of(server, 4)

    assert (names(added), names(deleted)) == (["ADDED a"], ["DELETED a"])
    assert [query.get("resourceVersion") for query in server.queries] == [None, "41", "50"]
    assert server.queries[1]["allowWatchBookmarks"] == "true"


async def test_a_line_longer_than_any_object_affects_only_that_object() -> None:
    endless = event("MODIFIED", obj("large", "2", namespace="x", data="x" * 20_000_000))
    pieces = [endless[i : i + 1_000_000] for i in range(0, len(endless), 1_000_000)]
    watches = [watch(*pieces), watch(event("ADDED", obj("b", "3")), hold=True)]
    server = ScriptedServer(things=[page(), *watches])

    *_, large, other = await signals_of(server, 4)

    assert (names(large), names(other)) == (["MODIFIED large"], ["ADDED b"])
    assert isinstance(large, Confirmed)
    assert isinstance(large.changes[0].object, Undecodable)
    assert server.queries[2]["resourceVersion"] == "2"


async def test_a_cut_line_is_dropped_and_its_event_comes_again() -> None:
    whole, cut = event("ADDED", obj("a", "2")), event("ADDED", obj("b", "3"))
    server = ScriptedServer(
        things=[page(), watch(whole, cut[:-9]), watch(cut, hold=True)],
    )

    *_, one, two = await signals_of(server, 4)

    assert (names(one), names(two)) == (["ADDED a"], ["ADDED b"])
    assert server.queries[2]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    "gone",
    [failure(410), watch(event("ERROR", {"code": 410, "message": "too old"}))],
    ids=["as a status", "as an event"],
)
async def test_after_410_everything_is_listed_again(gone) -> None:
    server = ScriptedServer(things=[page(version="1"), gone, page(obj("b"), version="9")])

    _, _, lost, again, listed = await signals_of(server, 5)

    assert isinstance(lost, Lost)
    assert lost.gap
    assert (names(again), listed) == (["b"], ListEnd())
    assert again.first


async def test_a_list_whose_continue_token_expired_starts_again() -> None:
    server = ScriptedServer(
        things=[page(obj("a"), then="old"), failure(410), page(obj("a")), watch(hold=True)]
    )

    _, lost, again, listed = await signals_of(server, 4)

    assert isinstance(lost, Lost)
    assert again == Page(again.items, first=True)
    assert listed == ListEnd()
    assert "continue" not in server.queries[2]


async def test_a_server_error_during_a_watch_needs_no_new_list() -> None:
    server = ScriptedServer(
        things=[page(version="7"), failure(500), watch(event("ADDED", obj("a", "8")), hold=True)]
    )

    _, _, lost, change = await signals_of(server, 4)

    assert isinstance(lost, Lost)
    assert not lost.gap
    assert names(change) == ["ADDED a"]
    assert server.queries[2]["resourceVersion"] == "7"


@pytest.mark.each_python
async def test_the_view_has_caught_up_at_the_end_of_a_watch_even_if_the_next_one_fails() -> None:
    """Behind a load balancer, every other request may reach a server that is away."""
    whole = watch(event("ADDED", obj("a", "2")))
    server = ScriptedServer(things=[page(), failure(503), whole, failure(503)])
    told = []

    async with server.serving() as client:
        signals = Watcher(client, THINGS, FAST).signals()
        while sum(isinstance(it, Lost) for it in told) < 2:
            told.append(await anext(signals))
        await signals.aclose()

    assert [it.caught_up for it in told if isinstance(it, Confirmed)] == [False, False, True]


async def test_a_watch_that_falls_silent_is_given_up() -> None:
    server = ScriptedServer(things=[page(), watch(hold=True)])

    *_, lost = await signals_of(server, 3, Backoff(silence=0.05, first_retry=0.01))

    assert isinstance(lost, Lost)
    assert "no answer within" in str(lost.error)


@pytest.mark.each_python
async def test_an_error_neither_quotes_nor_keeps_the_unreadable_line() -> None:
    line = b'{"type": 1, "object": {"spec": "s3cret"}}\n'
    server = ScriptedServer(things=[page(), watch(line, hold=True)])

    *_, lost = await signals_of(server, 3)

    assert isinstance(lost, Lost)
    assert "s3cret" not in str(lost.error)
    # The frames of a traceback hold the line.
    assert lost.error.__traceback__ is lost.error.__cause__ is lost.error.__context__ is None


async def test_an_event_without_a_version_keeps_the_last_version() -> None:
    without = event("ADDED", [])
    server = ScriptedServer(
        things=[
            page(version="7"),
            watch(event("ADDED", obj("a", "8"))),
            watch(without),
            watch(without),
        ]
    )

    await signals_of(server, 6)

    assert server.queries[3]["resourceVersion"] == "8"


async def test_lists_are_compressed_and_watches_are_not() -> None:
    """A proxy would hold back an event until there is enough to compress."""
    server = ScriptedServer(things=[page(), watch(event("ADDED", obj("a", "2")), hold=True)])

    await signals_of(server, 3)

    assert [headers["Accept-Encoding"] for headers in server.headers] == ["gzip", "identity"]


NODE_POOLS = ObjectKind("Pod", "/apis/karpenter.sh/v1/nodepools")


def gaps(*signals: Signal) -> list[bool]:
    """Return which of these losses of contact are gaps."""
    return [it.gap for it in signals if isinstance(it, Lost)]


ABSENT, INSTALLED = failure(404), page(obj("a"))
SHORT = replace(FAST, page=0.5)
IN_NO_DOUBT = replace(FAST, doubt=0.0)
ABSENCE = {
    **{f"{it} says nothing: the server may be starting": (
        [ABSENT, *[failure(it)] * 2, INSTALLED], FAST, [True, False, False]
    ) for it in (401, 403, 429, 502, 503, 504)},
    **{f"it stays so while the server is away: {name}": (
        [ABSENT, *away, ABSENT], replace(SHORT, doubt=0.0), [True, False, False, True]
    ) for name, away in {
        "cut": [cut()] * 4, "silent": [silence()] * 2,
        **{str(it): [failure(it)] * 2 for it in (502, 503, 504)},
    }.items()},
    **{f"it isn't so any more once the server answers otherwise: {name}": (
        [ABSENT, answer, *[cut()] * 2, *[failure(503)] * 9], SHORT, [True] * 6
    ) for name, answer in {
        "an error": failure(500), "unreadable": raw(b"no list"), "no version": page(version=""),
        "broken": broken(), "silence": watch(b"{", hold=True),
    }.items()},
    "a list of which a part has come is not that of an absent API": (
        [ABSENT, page(obj("a"), then="more"), cut(), cut()], FAST, [True, True]
    ),
    **{f"it is unknown if the server says {name} for too long": (
        [ABSENT, nothing, nothing], IN_NO_DOUBT, [True, True, True]
    ) for name, nothing in {
        "401": failure(401), "403": failure(403),
        "503 itself": failure(503, **{"Retry-After": "1"}),
    }.items()},
}  # fmt: skip


@pytest.mark.parametrize(("script", "backoff", "expected"), ABSENCE.values(), ids=ABSENCE)
async def test_what_the_server_lacks_is_known_to_be_absent(script, backoff, expected) -> None:
    """Else, each restart of the API server would let nodes of an autoscaler come that isn't there.

    Or Karpenter may just have been installed, and work badly: its nodes may come.
    """
    server = ScriptedServer(things=list(script))

    signals = await signals_of(server, len(expected) + 1, backoff)  # one may be a page

    assert gaps(*signals)[: len(expected)] == expected


@pytest.fixture
def later(monkeypatch) -> Callable[[float, Step], Step]:
    """Return a function that lets a step of a script come so many seconds later."""
    monkeypatch.setattr("gpuspawner.cluster.list_watch.time", clock := Clock())

    def coming(seconds: float, step: Step) -> Step:
        async def come(request: web.Request) -> web.StreamResponse:
            clock.now += seconds
            return await step(request)

        return come

    return coming


async def test_an_outage_is_no_doubt_about_an_api(later) -> None:
    """The answers before and after it say nothing, but for a moment only."""
    outage = [failure(429), later(60, failure(503)), later(60, failure(403))]
    server = ScriptedServer(things=[failure(404), *outage, later(11, failure(403))])

    signals = await signals_of(server, 5)

    assert gaps(*signals) == [True, False, False, False, True]


async def test_what_was_forbidden_before_a_watch_worked_is_no_doubt(later) -> None:
    works = watch(event("ADDED", obj("a", "2")))
    forbidden = [failure(403), works, later(60, failure(403)), later(11, failure(403))]

    signals = await signals_of(ScriptedServer(things=[page(), *forbidden]), 6)

    assert gaps(*signals) == [False, False, True]


@pytest.mark.parametrize("away", [silence(), failure(503)], ids=["silence", "a proxy's"])
async def test_an_api_whose_collection_never_answers_is_not_absent_once_discovery_shows_it(
    away,
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


async def test_a_forbidden_api_is_not_absent_any_more_once_discovery_shows_it() -> None:
    scripts = {"nodepools": [failure(403)] * 9, "v1": [failure(404), *[raw(b"{}")] * 9]}
    async with ScriptedServer(**scripts).serving() as client:
        absent, forbidden = await first(Watcher(client, NODE_POOLS, FAST).signals(), 2)

    assert gaps(absent, forbidden) == [True, True]
    assert [it.error.status for it in (absent, forbidden) if isinstance(it, Lost)] == [404, 403]
