"""The open pages of people who wait: each follows the progress of its owner's start."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import aiohttp

from tests.hub.running import API_TOKEN
from tests.race.beside import beside

_OPEN_SECONDS = 2.0, 6.0
_CLOSED_SECONDS = 2.0, 4.0
_RECONNECT_SECONDS = 0.2


@contextmanager
def open_pages(
    hub_url: str, stay: Sequence[str], close: Sequence[str], dice: random.Random
) -> Iterator[None]:
    """Keep everybody's page open while the block lasts; some people *close* it now and then."""
    over = threading.Event()
    with beside(lambda: asyncio.run(_pages(hub_url, stay, close, dice, over)), over):
        yield


async def _pages(
    hub_url: str,
    stay: Sequence[str],
    close: Sequence[str],
    dice: random.Random,
    over: threading.Event,
) -> None:
    headers = {"Authorization": f"token {API_TOKEN}", "Accept": "text/event-stream"}
    connector, never = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        headers=headers, connector=connector, timeout=never
    ) as session:
        users = f"{hub_url}/hub/api/users"
        pages = [_page(session, f"{users}/{name}") for name in stay]
        for name in close:
            times = dice.uniform(*_OPEN_SECONDS), dice.uniform(*_CLOSED_SECONDS)
            pages.append(_now_and_then(session, f"{users}/{name}", *times))
        async with asyncio.TaskGroup() as group:  # a page that fails must not just be gone
            tasks = [group.create_task(it) for it in pages]
            await asyncio.to_thread(over.wait)
            for task in tasks:
                task.cancel()


async def _now_and_then(
    session: aiohttp.ClientSession, user: str, is_open: float, is_closed: float
) -> None:
    """Have a page open for some seconds, and closed for some, again and again."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(is_open):
                await _page(session, user)
        await asyncio.sleep(is_closed)


async def _page(session: aiohttp.ClientSession, user: str) -> None:
    """Have a page open, as a browser does: connect again when the stream has ended."""
    while True:
        with suppress(aiohttp.ClientError):
            async with session.get(f"{user}/server/progress") as answer:
                async for _ in answer.content:
                    pass
        await asyncio.sleep(_RECONNECT_SECONDS)
