"""Reading a list in pages, one page ahead."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from aiohttp import web

from gpuspawner.cluster import list_watch as module
from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.list_watch import pages
from tests.unit.makers.scripted import ScriptedServer, Step, failure, obj, page
from tests.waiting import UNIT_PATIENCE as PATIENCE


def gzipped(step: Step) -> Step:
    async def compressed(request: web.Request) -> web.StreamResponse:
        response = await step(request)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    return compressed


async def read(client: Client) -> list[str]:
    """The names of all objects on all pages."""
    return [
        msgspec.json.decode(item)["metadata"]["name"]
        async for part in pages(client, "/things", {}, 5, Background())
        for item in part.items or ()
    ]


class Announced:
    """A step that sets an event when it is requested."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self.asked = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.set()
        return await self._step(request)


async def test_all_pages_come_in_order_compressed_or_not() -> None:
    steps = [page(obj("a"), then="1"), gzipped(page(obj("b"), then="2")), page(obj("c"))]
    server = ScriptedServer(things=steps)
    async with server.serving() as client:
        assert await read(client) == ["a", "b", "c"]
    assert [query.get("continue") for query in server.queries] == [None, "1", "2"]


async def test_the_next_page_is_requested_before_this_one_is_processed() -> None:
    ahead, further = Announced(page(obj("b"), then="2")), Announced(page())
    server = ScriptedServer(things=[page(obj("a"), then="1"), ahead, further])
    async with (
        server.serving() as client,
        aclosing(pages(client, "/things", {}, 5, Background())) as parts,
    ):
        await anext(parts)
        async with asyncio.timeout(PATIENCE):
            await ahead.asked.wait()

        # Only one page ahead: memory holds two pages, even if the reader is slow.
        assert not further.asked.is_set()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count in kilobytes what counts in megabytes: large pages cost the test, and not our code."""
    monkeypatch.setattr(module, "_PAGE_BYTES", 6 * 1024)
    monkeypatch.setattr(module, "_LONGEST_PAGE", 4 * 6 * 1024)


@pytest.mark.usefixtures("small")
async def test_fewer_large_objects_are_requested() -> None:
    large = [obj(f"o{number}", data="x" * 1_000) for number in range(12)]
    server = ScriptedServer(things=[page(*large, then="1"), page(obj("a"), then="2"), page()])
    async with server.serving() as client:
        await read(client)

    limits = [int(query["limit"]) for query in server.queries]
    assert limits[0] == 500
    assert 200 < limits[1] < 300
    assert limits[2] == 500


@pytest.mark.usefixtures("small")
async def test_a_page_that_is_too_long_is_requested_in_smaller_ones() -> None:
    vast = [obj(f"v{number}", data="x" * 3_000) for number in range(10)]
    steps = [page(*vast, then="1"), page(vast[0], then="2"), page(*vast[1:])]
    server = ScriptedServer(things=[*steps, page(vast[1], then="3"), page(*vast[2:4])])
    async with server.serving() as client:
        assert await read(client) == ["v0", "v1", "v2", "v3"]

    limits = [int(query["limit"]) for query in server.queries]
    assert limits[:2] == [500, 62]
    assert limits[3] == limits[2] // 8
    tokens = [query.get("continue") for query in server.queries]
    assert tokens == [None, None, "2", "2", "3"]


@pytest.mark.usefixtures("small")
async def test_a_single_object_is_read_at_any_size() -> None:
    vast = page(obj("vast", data="x" * 30_000))
    server = ScriptedServer(things=[vast] * 4)
    async with server.serving() as client:
        assert await read(client) == ["vast"]

    assert [query["limit"] for query in server.queries] == ["500", "62", "7", "1"]


@pytest.mark.each_python
async def test_a_reader_that_stops_leaves_no_request_behind() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    ahead = Announced(never)
    server = ScriptedServer(things=[page(obj("a"), then="1"), ahead])
    async with server.serving() as client:
        before = asyncio.all_tasks()
        async with aclosing(pages(client, "/things", {}, 5, Background())) as parts:
            await anext(parts)
            async with asyncio.timeout(PATIENCE):
                await ahead.asked.wait()

        assert not [task for task in asyncio.all_tasks() - before if "_body" in repr(task)]


async def test_an_error_of_the_next_page_is_raised_after_this_page() -> None:
    server = ScriptedServer(things=[page(obj("a"), then="1"), failure(500, "etcd is gone")])
    async with (
        server.serving() as client,
        aclosing(pages(client, "/things", {}, 5, Background())) as parts,
    ):
        assert len((await anext(parts)).items or ()) == 1
        with pytest.raises(RequestError, match="etcd is gone"):
            await anext(parts)
