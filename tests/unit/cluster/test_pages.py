"""Pages of a list, read one ahead."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from aiohttp import web

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.pages import pages
from tests.unit.cluster.scripted import ScriptedServer, Step, failure, obj, page
from tests.waiting import PATIENCE


def packed(step: Step) -> Step:
    async def packing(request: web.Request) -> web.StreamResponse:
        response = await step(request)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    return packing


async def read(client: Client) -> list[str]:
    """The names of all objects on all pages."""
    return [
        msgspec.json.decode(item)["metadata"]["name"]
        async for part in pages(client, "/things", {}, 5)
        for item in part.items or ()
    ]


class Announced:
    """A step that says when it is asked for."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self.asked = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.set()
        return await self._step(request)


async def test_all_pages_come_in_order_packed_or_not() -> None:
    steps = [page(obj("a"), then="1"), packed(page(obj("b"), then="2")), page(obj("c"))]
    server = ScriptedServer(things=steps)
    async with server.serving() as client:
        assert await read(client) == ["a", "b", "c"]
    assert [query.get("continue") for query in server.queries] == [None, "1", "2"]


async def test_the_next_page_is_asked_for_before_this_one_is_taken_in() -> None:
    ahead, further = Announced(page(obj("b"), then="2")), Announced(page())
    server = ScriptedServer(things=[page(obj("a"), then="1"), ahead, further])
    async with server.serving() as client, aclosing(pages(client, "/things", {}, 5)) as parts:
        await anext(parts)
        async with asyncio.timeout(PATIENCE):
            await ahead.asked.wait()

        # One ahead, and no more: memory holds two pages, however slow the reader is.
        assert not further.asked.is_set()


async def test_of_large_objects_fewer_are_asked_for() -> None:
    large = [obj(f"o{number}", data="x" * 1_000_000) for number in range(12)]
    server = ScriptedServer(things=[page(*large, then="1"), page(obj("a"), then="2"), page()])
    async with server.serving() as client:
        await read(client)

    limits = [int(query["limit"]) for query in server.queries]
    assert limits[0] == 500
    assert 200 < limits[1] < 300
    assert limits[2] == 500


async def test_a_page_too_long_to_keep_is_asked_for_in_smaller_ones() -> None:
    vast = [obj(f"v{number}", data="x" * 3_000_000) for number in range(10)]
    steps = [page(*vast, then="1"), page(vast[0], then="2"), page(*vast[1:])]
    server = ScriptedServer(things=[*steps, page(vast[1], then="3"), page(*vast[2:4])])
    async with server.serving() as client:
        assert await read(client) == ["v0", "v1", "v2", "v3"]

    limits = [int(query["limit"]) for query in server.queries]
    assert limits[:2] == [500, 62]
    assert limits[3] == limits[2] // 8
    tokens = [query.get("continue") for query in server.queries]
    assert tokens == [None, None, "2", "2", "3"]


async def test_one_object_is_read_however_large_it_is() -> None:
    vast = page(obj("vast", data="x" * 30_000_000))
    server = ScriptedServer(things=[vast] * 4)
    async with server.serving() as client:
        assert await read(client) == ["vast"]

    assert [query["limit"] for query in server.queries] == ["500", "62", "7", "1"]


async def test_whoever_stops_reading_leaves_no_request_behind() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    ahead = Announced(never)
    server = ScriptedServer(things=[page(obj("a"), then="1"), ahead])
    async with server.serving() as client:
        before = asyncio.all_tasks()
        async with aclosing(pages(client, "/things", {}, 5)) as parts:
            await anext(parts)
            async with asyncio.timeout(PATIENCE):
                await ahead.asked.wait()

        assert not [task for task in asyncio.all_tasks() - before if "_body" in repr(task)]


async def test_what_the_page_ahead_failed_with_is_told_after_this_one() -> None:
    server = ScriptedServer(things=[page(obj("a"), then="1"), failure(500, "etcd is gone")])
    async with server.serving() as client, aclosing(pages(client, "/things", {}, 5)) as parts:
        assert len((await anext(parts)).items or ()) == 1
        with pytest.raises(RequestError, match="etcd is gone"):
            await anext(parts)
