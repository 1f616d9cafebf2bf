"""What the administrator's function does with a notice, the hub goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from gpuspawner.use import notices
from gpuspawner.use.notices import Notices
from tests.waiting import UNIT_PATIENCE

ANN = {"user": "ann", "server": ""}
BOB = {"user": "bob", "server": ""}


async def tell_both(notify: Callable[[Any], Any], ends: Event) -> None:
    """Tell both owners; at last, let calls go on that hang."""
    both = Notices(notify)
    telling = asyncio.gather(both.tell(ANN), both.tell(BOB))
    try:
        await asyncio.wait_for(telling, UNIT_PATIENCE)
    finally:
        ends.set()


async def test_a_notice_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: object) -> None:
        raise OSError("no mail")

    await Notices(fails).tell(ANN)

    assert "no mail" in caplog.text


async def test_notices_that_hang_take_no_thread_of_the_hubs() -> None:
    """The hub looks up addresses in these threads, for its proxy and for servers that start."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    asked, ends = Event(), Event()

    def hangs(_: object) -> None:
        asked.set()
        ends.wait()

    both = Notices(hangs)
    telling = [asyncio.create_task(both.tell(it)) for it in (ANN, BOB)]

    try:
        assert await asyncio.wait_for(asyncio.to_thread(asked.wait, 9), 9)
    finally:
        ends.set()
    await asyncio.gather(*telling)


def hanging_in_a_thread(ends: Event) -> Callable[[Any], None]:
    def notify(told: Any) -> None:
        if told["user"] == "ann":
            ends.wait()

    return notify


def hanging_in_the_hub(_: Event) -> Callable[[Any], Any]:
    async def notify(told: Any) -> None:
        if told["user"] == "ann":
            await asyncio.Event().wait()

    return notify


@pytest.mark.parametrize("hanging", [hanging_in_a_thread, hanging_in_the_hub])
async def test_a_notice_that_hangs_is_logged_and_gives_its_place_to_the_next(
    hanging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notices, "_SECONDS", 0.05)
    monkeypatch.setattr(notices, "_AT_ONCE", 1)
    ends, told = Event(), list[str]()
    notify = hanging(ends)

    def notifies(it: Any) -> Any:
        told.append(it["user"])
        return notify(it)

    await tell_both(notifies, ends)

    assert told == ["ann", "bob"]
    assert "gpu_use.notify hasn't returned in 0.05 s for 'ann/'" in caplog.text
    assert "bob" not in caplog.text


async def test_notices_that_hang_forever_take_only_so_many_threads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notices, "_SECONDS", 0.05)
    monkeypatch.setattr(notices, "_AT_ONCE", 1)
    monkeypatch.setattr(notices, "_CALLS", 1)
    ends, told = Event(), list[str]()

    def hangs(it: Any) -> None:
        told.append(it["user"])
        ends.wait()

    await tell_both(hangs, ends)

    assert told == ["ann"]
    assert "the owner of 'bob/' isn't told" in caplog.text


async def test_a_notice_that_would_end_the_hub_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def leaves(_: object) -> None:
        sys.exit(3)

    await Notices(leaves).tell(ANN)

    assert "in leaves" in caplog.text
