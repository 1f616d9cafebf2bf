"""A stream ends soon after its client has lost the right to it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from gpuspawner.web.stream.stream import AGAIN, CHECK_SECONDS, Stream
from tests.unit.web.stream.following import Client, Form, Hub, always

pytestmark = [pytest.mark.each_python, pytest.mark.usefixtures("streams")]


async def test_a_client_that_loses_its_rights_has_to_open_another_stream_and_others_stay() -> None:
    rights, checked = {"good", "bad"}, asyncio.Event()

    def good() -> bool:
        checked.set()
        return "good" in rights

    hub = Hub()
    stays = Client(Form(""), may_stay=good)
    goes = Client(Form(""), may_stay=lambda: "bad" in rights)
    async with hub.following(stays, goes):
        await asyncio.wait_for(checked.wait(), 2 * CHECK_SECONDS)
        rights.remove("bad")
        assert await asyncio.wait_for(goes.stream.ended, 2 * CHECK_SECONDS) == AGAIN
        checked.clear()
        await asyncio.wait_for(checked.wait(), 2 * CHECK_SECONDS)
        assert not stays.stream.ended.done()


async def test_if_rights_cannot_be_read_the_streams_end_and_the_log_says_it_once(
    caplog, monkeypatch
) -> None:
    monkeypatch.setattr("gpuspawner.web.stream.stream.CHECK_SECONDS", 0.0)  # all at once

    def fails() -> bool:
        raise OSError("the database is away")

    hub, unreadable = Hub(), [Client(Form(""), may_stay=fails) for _ in range(3)]
    good = Client(Form("other"))
    with caplog.at_level(logging.ERROR):
        async with hub.following(*unreadable, good):
            for client in unreadable:
                assert await client.stream.ended == b""
            Form.shows["other"] = 1
            hub.view.wake()
            await good.until("0", "1")
    assert [it.message for it in caplog.records] == ["The rights of open forms can't be checked"]


async def test_streams_that_were_opened_together_are_checked_at_different_times() -> None:
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
