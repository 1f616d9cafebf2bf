"""The open pages of people who wait: each follows the progress of its owner's start."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue

import aiohttp

from tests.hub.running import API_TOKEN
from tests.race.beside import beside

_OPEN_SECONDS = 2.0, 6.0
_CLOSED_SECONDS = 2.0, 4.0
_RECONNECT_SECONDS = 0.2


@contextmanager
def open_pages(
    hub_url: str, closers: Container[str], dice: random.Random
) -> Iterator[Callable[[str], None]]:
    """Yield what opens somebody's page, for as long as the block lasts.

    The *closers* close it now and then.
    """
    opened = SimpleQueue[str | None]()
    with beside(lambda: asyncio.run(_pages(hub_url, opened, closers, dice))):
        try:
            yield opened.put
        finally:
            opened.put(None)


async def _pages(
    hub_url: str, opened: SimpleQueue[str | None], closers: Container[str], dice: random.Random
) -> None:
    headers = {"Authorization": f"token {API_TOKEN}", "Accept": "text/event-stream"}
    connector, never = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(headers=headers, connector=connector, timeout=never) as session,
        asyncio.TaskGroup() as group,  # a page that fails must not just be gone
    ):
        tasks = []
        while name := await asyncio.to_thread(opened.get):
            page = partial(_page, session, f"{hub_url}/hub/api/users/{name}")
            if name in closers:
                times = dice.uniform(*_OPEN_SECONDS), dice.uniform(*_CLOSED_SECONDS)
                page = partial(_now_and_then, page, *times)
            tasks.append(group.create_task(page()))
        for task in tasks:
            task.cancel()


async def _now_and_then(
    page: Callable[[], Awaitable[None]], is_open: float, is_closed: float
) -> None:
    """Have a page open for some seconds, and closed for some, again and again."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(is_open):
                await page()
        await asyncio.sleep(is_closed)


async def _page(session: aiohttp.ClientSession, user: str) -> None:
    """Have a page open, as a browser does: connect again when the stream has ended."""
    while True:
        with suppress(aiohttp.ClientError):
            async with session.get(f"{user}/server/progress") as answer:
                async for _ in answer.content:
                    pass
        await asyncio.sleep(_RECONNECT_SECONDS)
