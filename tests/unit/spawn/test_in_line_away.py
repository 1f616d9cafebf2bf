"""Who waits in line with the page open, who is away, and who comes back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from gpuspawner.queue.rules import QueueRules
from gpuspawner.spawn import in_line
from tests.unit.spawn.waiters import FULL, Waiting

pytestmark = pytest.mark.usefixtures("clock")

AWAY = QueueRules().seconds_away
"""For how long a place is kept for somebody who has left the page."""


async def test_who_is_away_for_too_long_loses_the_place(waiting) -> None:
    alice = await waiting("here")
    assert (await alice.refused()).slug == "away-from-line"


async def test_an_open_page_keeps_the_place_and_a_visit_begins_the_time_anew(waiting) -> None:
    alice = await waiting("here")
    with alice.place.watched():
        await asyncio.sleep(1.1 * AWAY)
        assert alice.place.is_on
    await asyncio.sleep(0.9 * AWAY)
    assert alice.place.is_on  # closing the page is the last visit
    alice.place.see()
    await asyncio.sleep(0.9 * AWAY)
    assert alice.place.is_on
    alice.start.cancel()


async def test_who_comes_back_when_there_is_room_is_served(waiting) -> None:
    alice = await waiting("here")
    await asyncio.sleep(in_line.RELOAD_SECONDS + 10)
    alice.hub.view.remove_pod("x")
    await asyncio.sleep(60)
    assert alice.place.is_on

    alice.place.see()

    await alice.starts()


async def test_a_server_that_needs_no_page_waits_without_one(waiting) -> None:
    alice = await waiting(True)
    await asyncio.sleep(1.1 * AWAY)
    assert alice.place.is_on
    alice.start.cancel()


async def test_the_page_says_whether_it_has_to_stay_open(waiting, monkeypatch) -> None:
    monkeypatch.setattr(in_line, "line", lambda _: "/hub/line")
    for wish, says in (("here", "while this page is open"), (True, "You can close this page")):
        alice = await waiting(wish)
        event = await anext(alice.spawner.progress())
        assert says in event["html_message"]
        assert says not in event["message"]
        alice.start.cancel()


class TellingItself(GPUSpawner):
    """An administrator's class that tells how far a start is."""

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        yield {"progress": 50, "message": "Half-way."}


async def test_a_server_whose_pages_nobody_can_see_needs_none(hub_with) -> None:
    alice = Waiting(hub_with(*FULL), "here", TellingItself)
    await alice.begin()
    await asyncio.sleep(1.1 * AWAY)
    assert alice.place.is_on

    alice.hub.view.remove_pod("x")

    await alice.starts()
