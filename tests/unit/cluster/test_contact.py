"""Waking the watchers of an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gpuspawner.cluster.contact import Contact
from tests.waiting import PATIENCE

pytestmark = pytest.mark.each_python


async def woken(contact: Contact, wakes: int) -> int:
    """Wait until there were more than so many wakes; return how many."""
    async with asyncio.timeout(PATIENCE):
        await contact.wait(wakes, PATIENCE * 10)
    return contact.wakes


async def test_all_that_wait_are_woken_at_once() -> None:
    contact = Contact()
    waiting = [asyncio.ensure_future(woken(contact, 0)) for _ in range(3)]
    await asyncio.sleep(0)

    contact.wake()

    assert await asyncio.gather(*waiting) == [1, 1, 1]


async def test_who_waits_for_a_wake_that_has_been_goes_on_at_once() -> None:
    contact = Contact()
    contact.wake()

    assert await woken(contact, 0) == 1


async def test_a_wake_just_after_another_comes_later_and_only_once(
    virtual_time: Callable[[], float],
) -> None:
    """Behind a load balancer, the first answer may have come from the only server that works."""
    contact, began = Contact(), virtual_time()
    for _ in range(3):
        contact.wake()
    assert contact.wakes == 1

    assert await woken(contact, 1) == 2
    assert virtual_time() - began == pytest.approx(8)
    await contact.wait(2, 3600)

    assert contact.wakes == 2


async def test_a_wait_without_a_wake_ends_in_time(virtual_time: Callable[[], float]) -> None:
    contact, began = Contact(), virtual_time()

    await contact.wait(0, 60)

    assert contact.wakes == 0
    assert virtual_time() - began == pytest.approx(60)
