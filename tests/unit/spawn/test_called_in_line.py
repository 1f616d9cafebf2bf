"""What a page can do between the call of a start that waited and its admission."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.preflight.worlds import pod
from tests.unit.spawn.waiters import Waiting

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("clock")]


class Gate:
    """Holds a start between its call and its admission, as a dry run does."""

    def __init__(self, alice: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
        admitting = alice.place._admitting
        self._admit, self._opens = admitting.admit, asyncio.Event()
        self.alice, self._is_full, self._reached = alice, False, asyncio.Event()
        monkeypatch.setattr(admitting, "admit", self._hold)

    async def _hold(self, choice: Any) -> Any:
        self._reached.set()
        await self._opens.wait()
        if self._is_full:
            self.alice.hub.view.put("Pod", pod("x", 1, on="a"))
            preflight = self.alice.hub.runtime(self.alice.spawner).preflight
            preflight.reservations.release(choice.proposal.key)
        return await self._admit(choice)

    async def reach(self) -> None:
        """Call the start."""
        self.alice.hub.view.remove_pod("x")
        await self._reached.wait()

    def open(self, *, is_full: bool = False) -> None:
        self._is_full = is_full
        self._opens.set()


@pytest.fixture
async def gate(waiting: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A start of Alice's that has been called."""
    made = Gate(await waiting(), monkeypatch)
    await made.reach()
    return made


async def test_who_is_called_cant_leave_any_more(waiting: Callable[..., Any]) -> None:
    alice = await waiting()
    alice.hub.view.remove_pod("x")
    await alice.starts()
    assert not alice.place.leave()


async def test_a_page_opened_between_the_call_and_the_start_tells_of_both(gate: Gate) -> None:
    event = await anext(gate.alice.spawner.progress())

    assert "You are next in line." in event["message"]
    assert gate.alice.place._pages == 1
    gate.open()
    await gate.alice.starts()


async def test_who_leaves_after_the_call_does_not_join_again(gate: Gate) -> None:
    assert gate.alice.place.leave()
    gate.open(is_full=True)

    assert (await gate.alice.refused()).slug == "left-line"
    assert "You have left the line." in await gate.alice.spawner.get_options_form()


async def test_who_leaves_after_the_call_starts_if_that_is_too_late(gate: Gate) -> None:
    assert gate.alice.place.leave()
    gate.open()

    await gate.alice.starts()
    assert not gate.alice.place.leave()
