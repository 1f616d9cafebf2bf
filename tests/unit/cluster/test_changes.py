"""Tasks that wait for the next change of a store."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.cluster.changes import Changes
from tests.waiting import UNIT_PATIENCE as PATIENCE

pytestmark = pytest.mark.each_python


async def test_every_task_that_waits_hears_of_the_next_change() -> None:
    changes = Changes()
    waiting = [asyncio.create_task(changes.next(PATIENCE)) for _ in range(3)]
    await asyncio.sleep(0)

    changes.tell()

    assert await asyncio.gather(*waiting) == [True] * 3


@pytest.mark.usefixtures("clock")
async def test_a_change_before_the_wait_is_no_next_one() -> None:
    changes = Changes()
    changes.tell()

    assert not await changes.next(60)


async def test_a_change_between_the_call_and_its_first_wait_is_heard() -> None:
    changes = Changes()
    waiting = asyncio.ensure_future(changes.next(PATIENCE))
    asyncio.get_running_loop().call_soon(changes.tell)

    assert await waiting


async def test_a_wait_whose_time_is_already_up_ends_at_once() -> None:
    assert not await Changes().next(-1.0)
