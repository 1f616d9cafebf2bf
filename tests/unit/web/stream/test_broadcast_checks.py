"""A stream ends soon after its client has lost the right to it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from gpuspawner.web.stream import broadcast
from gpuspawner.web.stream.stream import AGAIN, Stream
from tests.unit.web.stream.following import MOMENT, Client, Form, Hub, always

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("hasty")]


@pytest.fixture
def checks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast, "_TEND_SECONDS", MOMENT)
    monkeypatch.setattr("gpuspawner.web.stream.stream.CHECK_SECONDS", MOMENT)


@pytest.mark.usefixtures("checks_often")
async def test_a_client_that_loses_its_rights_has_to_open_another_stream_and_others_stay() -> None:
    rights, checked = {"good", "bad"}, asyncio.Event()

    def good() -> bool:
        checked.set()
        return "good" in rights

    hub = Hub()
    stays = Client(Form(""), may_stay=good)
    goes = Client(Form(""), may_stay=lambda: "bad" in rights)
    async with hub.following(stays, goes):
        await asyncio.wait_for(checked.wait(), 4)
        rights.remove("bad")
        assert await asyncio.wait_for(goes.stream.ended, 4) == AGAIN
        checked.clear()
        await asyncio.wait_for(checked.wait(), 4)
        assert not stays.stream.ended.done()


@pytest.mark.usefixtures("checks_often")
async def test_if_rights_cannot_be_read_the_streams_end_and_the_log_says_it_once(caplog) -> None:
    def fails() -> bool:
        raise OSError("the database is away")

    hub, unreadable = Hub(), [Client(Form(""), may_stay=fails) for _ in range(3)]
    good = Client(Form("other"))
    with caplog.at_level(logging.ERROR):
        async with hub.following(*unreadable, good):
            for client in unreadable:
                assert await asyncio.wait_for(client.stream.ended, 4) == b""
            Form.shows["other"] = 1
            hub.view.wake()
            await good.until("0", "1")
    assert [it.message for it in caplog.records] == ["The rights of open forms can't be checked"]


async def test_streams_that_were_opened_together_are_checked_at_different_times(
    monkeypatch,
) -> None:
    monkeypatch.setattr("gpuspawner.web.stream.stream.CHECK_SECONDS", 60.0)
    now = 0.0
    streams: list[Any] = [
        Stream(Form(""), lambda _: None, 1e9, always, lambda: now) for _ in range(1000)
    ]
    due = []
    for second in range(5, 125, 5):
        now = float(second)
        due.append(sum(it.is_to_check() for it in streams))

    assert sum(due) == 2 * len(streams)
    assert max(due) < 2 * len(streams) / 12
