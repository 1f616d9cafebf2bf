"""What the administrator's function does with a notice, the hub goes on."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from gpuspawner.use import notices
from gpuspawner.use.notices import Notices
from tests.waiting import UNIT_PATIENCE

ANN = {"user": "ann", "server": "", "stops_in_seconds": 600}
BOB = {"user": "bob", "server": "", "stops_in_seconds": 600}


async def tell_both(notify, ends):
    """Tell both owners; at last, let calls go on that hang."""
    both = Notices(notify)
    telling = asyncio.gather(both.tell(ANN), both.tell(BOB))
    try:
        await asyncio.wait_for(telling, UNIT_PATIENCE)
    finally:
        ends.set()


def fails(_):
    raise OSError("no mail")


async def leaves(_):
    sys.exit(3)


@pytest.mark.parametrize(("notify", "logged"), [(fails, "no mail"), (leaves, "in leaves")])
async def test_a_notice_that_fails_or_would_end_the_hub_is_logged(notify, logged, caplog):
    await Notices(notify).tell(ANN)

    assert logged in caplog.text


async def test_calls_that_end_or_never_began_make_room_for_others(monkeypatch, caplog):
    monkeypatch.setattr(notices, "_CALLS", 1)
    told = []
    both = Notices(told.append)

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", no_thread)
        await both.tell(ANN)
    await both.tell(ANN)
    await both.tell(BOB)

    assert "can't start new thread" in caplog.text
    assert told == [ANN, BOB]


def no_thread(_):
    raise RuntimeError("can't start new thread")


async def test_notices_that_hang_take_no_thread_of_the_hubs():
    """The hub looks up addresses in these threads, for its proxy and for servers that start."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    asked, ends = Event(), Event()

    def hangs(_):
        asked.set()
        ends.wait()

    both = Notices(hangs)
    telling = [asyncio.create_task(both.tell(it)) for it in (ANN, BOB)]

    try:
        assert await asyncio.wait_for(asyncio.to_thread(asked.wait, 9), 9)
    finally:
        ends.set()
    await asyncio.gather(*telling)


@pytest.mark.parametrize(("took", "told"), [(240, [600, 360]), (600, [600])])
async def test_a_notice_says_how_long_is_left_by_its_turn_and_comes_not_too_late(
    took, told, monkeypatch, caplog
):
    monkeypatch.setattr(notices, "_AT_ONCE", 1)
    now, found = [0.0], []
    monkeypatch.setattr(notices.time, "monotonic", lambda: now[0])

    async def takes(notice):
        found.append(notice["stops_in_seconds"])
        now[0] += took

    both = Notices(takes)
    await asyncio.gather(both.tell(ANN), both.tell(BOB))

    assert found == told
    assert ("'bob/' isn't told" in caplog.text) == (len(told) == 1)


def hanging_in_a_thread(ends):
    def notify(told):
        if told["user"] == "ann":
            ends.wait()

    return notify


def hanging_in_the_hub(_):
    async def notify(told):
        if told["user"] == "ann":
            await asyncio.Event().wait()

    return notify


@pytest.mark.parametrize("hanging", [hanging_in_a_thread, hanging_in_the_hub])
async def test_a_notice_that_hangs_is_logged_and_gives_its_place_to_the_next(
    hanging, monkeypatch, caplog
):
    monkeypatch.setattr(notices, "_SECONDS", 0.5)
    monkeypatch.setattr(notices, "_AT_ONCE", 1)
    ends, told = Event(), []
    notify = hanging(ends)

    def notifies(it):
        told.append(it["user"])
        return notify(it)

    await tell_both(notifies, ends)

    assert told == ["ann", "bob"]
    assert "gpu_use.notify hasn't returned in 0.5 s for 'ann/'" in caplog.text
    assert "bob" not in caplog.text


async def test_notices_that_hang_forever_take_only_so_many_threads(monkeypatch, caplog):
    monkeypatch.setattr(notices, "_SECONDS", 0.05)
    monkeypatch.setattr(notices, "_AT_ONCE", 1)
    monkeypatch.setattr(notices, "_CALLS", 1)
    ends, told = Event(), []

    def hangs(it):
        told.append(it["user"])
        ends.wait()

    await tell_both(hangs, ends)

    assert told == ["ann"]
    assert "the owner of 'bob/' isn't told" in caplog.text
