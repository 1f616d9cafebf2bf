"""Who waits in line with the page open, who is away, and who comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from gpuspawner.queue.ticket import Ticket
from gpuspawner.spawn import in_line
from tests.unit.preflight.worlds import settle
from tests.unit.spawn.waiters import FULL, Waiting

pytestmark = pytest.mark.each_python

LONG = 1000.0
"""Seconds: longer than a place is kept."""


async def test_who_is_away_for_too_long_loses_the_place(waiting) -> None:
    alice = await waiting("here")
    alice.place._seen -= LONG
    assert (await alice.refused()).slug == "away-from-line"


async def test_an_open_page_keeps_the_place_and_a_visit_begins_the_time_anew(waiting) -> None:
    alice = await waiting("here")
    with alice.place.watched():
        alice.place._seen -= LONG
        for _ in range(3):
            await asyncio.sleep(0.02)
        assert alice.place.is_on
    assert alice.place.is_on  # closing the page is the last visit
    alice.place._seen -= LONG
    alice.place.see()
    await asyncio.sleep(0.02)
    assert alice.place.is_on
    alice.start.cancel()


async def test_who_comes_back_when_there_is_room_is_served(waiting, monkeypatch) -> None:
    alice, aside = await waiting("here"), asyncio.Event()
    line = alice.hub.runtime(alice.spawner).preflight.line
    step_aside = line.step_aside

    def note(ticket: Ticket) -> None:
        step_aside(ticket)
        aside.set()

    monkeypatch.setattr(line, "step_aside", note)
    alice.place._seen -= in_line.RELOAD_SECONDS + 1
    await asyncio.wait_for(aside.wait(), 5)
    alice.hub.view.remove_pod("x")
    await settle()
    assert alice.place.is_on

    alice.place.see()

    await asyncio.wait_for(alice.start, 5)


async def test_a_server_that_needs_no_page_waits_without_one(waiting) -> None:
    alice = await waiting(True)
    alice.place._seen -= LONG
    await asyncio.sleep(0.02)
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


async def test_a_server_whose_pages_nobody_can_see_needs_none(hub_with, monkeypatch) -> None:
    monkeypatch.setattr(in_line, "_LOOK_SECONDS", 0.01)
    alice = Waiting(hub_with(*FULL), "here", TellingItself)
    await alice.begin()
    alice.place._seen -= LONG
    await asyncio.sleep(0.02)
    assert alice.place.is_on

    alice.hub.view.remove_pod("x")

    assert alice.start is not None
    await asyncio.wait_for(alice.start, 5)
