"""Watching under scripted faults; tests/cluster follows a real API server."""

import pytest

from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.watch import Confirmed, Listed, Lost, Page
from gpuspawner.kube.objects import Undecodable
from tests.unit.cluster.scripted import ScriptedServer, event, failure, obj, page, raw, watch
from tests.unit.cluster.signals import names, signals_of

pytestmark = pytest.mark.each_python


async def test_a_list_comes_in_pages_and_ends_with_listed() -> None:
    server = ScriptedServer(things=[page(obj("a"), then="more"), page(obj("b"))])

    one, two, end = await signals_of(server, 3)

    assert (names(one), names(two), end) == (["a"], ["b"], Listed())
    assert (one.first, two.first) == (True, False)
    assert server.queries[1]["continue"] == "more"
    assert server.queries[0]["limit"] == "500"


async def test_items_that_are_null_are_an_empty_list() -> None:
    server = ScriptedServer(things=[raw(b'{"metadata":{"resourceVersion":"1"},"items":null}')])

    assert await signals_of(server, 2) == [Page([], first=True), Listed()]


async def test_a_watch_starts_at_the_version_of_the_list() -> None:
    server = ScriptedServer(
        things=[page(version="41"), watch(event("ADDED", obj("a", "42")), hold=True)]
    )

    *_, change = await signals_of(server, 3)

    assert names(change) == ["ADDED a"]
    assert server.queries[1]["resourceVersion"] == "41"
    assert server.queries[1]["allowWatchBookmarks"] == "true"


async def test_after_a_watch_ends_the_next_one_starts_at_its_last_version() -> None:
    server = ScriptedServer(
        things=[
            page(version="41"),
            watch(event("ADDED", obj("a", "42")), event("BOOKMARK", obj("", "50"))),
            watch(event("DELETED", obj("a", "51")), hold=True),
        ]
    )

    *_, change = await signals_of(server, 4)

    assert names(change) == ["DELETED a"]
    assert server.queries[2]["resourceVersion"] == "50"


async def test_a_line_in_many_pieces_is_one_event() -> None:
    line = event("ADDED", obj("a", "2", data="x" * 3_000_000))
    pieces = [line[i : i + 100_000] for i in range(0, len(line), 100_000)]
    server = ScriptedServer(things=[page(), watch(*pieces, hold=True)])

    *_, change = await signals_of(server, 3)

    assert names(change) == ["ADDED a"]


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


async def test_a_long_line_without_an_object_ends_the_watch() -> None:
    piece = b"x" * 1_000_000
    server = ScriptedServer(things=[page(), watch(*[piece] * 17, b"\n", hold=True)])

    *_, lost = await signals_of(server, 3)

    assert isinstance(lost, Lost)
    assert "longer than any object" in str(lost.error)


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
async def test_after_410_everything_is_listed_again(gone: object) -> None:
    server = ScriptedServer(things=[page(version="1"), gone, page(obj("b"), version="9")])

    _, _, lost, again, listed = await signals_of(server, 5)

    assert isinstance(lost, Lost)
    assert lost.gap
    assert (names(again), listed) == (["b"], Listed())
    assert again.first


async def test_a_list_whose_continue_token_expired_starts_again() -> None:
    server = ScriptedServer(
        things=[page(obj("a"), then="old"), failure(410), page(obj("a")), watch(hold=True)]
    )

    _, lost, again, listed = await signals_of(server, 4)

    assert isinstance(lost, Lost)
    assert again == Page(again.items, first=True)
    assert listed == Listed()
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


async def test_a_watch_that_falls_silent_is_given_up() -> None:
    server = ScriptedServer(things=[page(), watch(hold=True)])

    *_, lost = await signals_of(server, 3, Backoff(silence=0.05, first_retry=0.01))

    assert isinstance(lost, Lost)
    assert "no answer within" in str(lost.error)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b'{"items": []}', b'{"metadata":{},"items":[]}', b"\xff\xfe", b""],
)
async def test_an_answer_that_is_no_list_is_an_error_and_not_an_empty_cluster(body: bytes) -> None:
    server = ScriptedServer(things=[raw(body)])

    signals = await signals_of(server, 2)

    assert Listed() not in signals
    assert any(isinstance(signal, Lost) for signal in signals)


@pytest.mark.parametrize("line", [b"<html>\n", b'{"type": 1}\n', b'{"type":"ERROR","object":3}\n'])
async def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    server = ScriptedServer(things=[page(), watch(line, hold=True)])

    *_, lost = await signals_of(server, 3)

    assert isinstance(lost, Lost)


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
