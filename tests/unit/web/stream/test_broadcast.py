"""What many open forms show is found out once, and sent only to those that show something else."""

import asyncio
import logging
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.start.refusal import misconfigured
from gpuspawner.web.stream.broadcast import AT_LEAST_EVERY, LEAST_REST, MOST_REST, SHARE, Rhythm
from gpuspawner.web.stream.open_form import Shown
from gpuspawner.web.stream.open_streams import AGAIN, CHECK_SECONDS, FULL, Stream
from tests.unit.makers.clocks import Clock
from tests.unit.makers.following import Client, Form, Hub, always


def looked(seconds: float = 0.0) -> tuple[Clock, Rhythm]:
    """A rhythm after one look that took so much processor time."""
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.end(seconds)
    return clock, rhythm


def test_a_change_after_a_quiet_time_is_looked_at_at_once() -> None:
    clock, rhythm = looked()
    clock.now = 3

    assert rhythm.due() > 0
    rhythm.note()
    assert rhythm.due() == 0


def test_a_change_soon_after_a_look_waits_for_the_end_of_the_rest() -> None:
    clock, rhythm = looked()
    clock.now = 0.1

    rhythm.note()

    assert rhythm.due() == pytest.approx(LEAST_REST - 0.1)


def test_a_thousand_changes_are_one_look() -> None:
    clock, rhythm = looked()
    looks = 0
    for number in range(1000):
        clock.now = number / 1000
        rhythm.note()
        if not rhythm.due():
            looks += 1
            rhythm.begin()
            rhythm.end(0.001)

    assert looks == 1


def test_only_the_first_change_wakes_anybody() -> None:
    _, rhythm = looked()

    assert [rhythm.note(), rhythm.note()] == [True, False]
    rhythm.begin()
    assert rhythm.note()


def test_a_change_during_a_look_is_looked_at_afterwards() -> None:
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.note()
    rhythm.end(0.001)
    clock.now = LEAST_REST

    assert rhythm.due() == 0


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.5, 10.0])
def test_the_rest_is_long_enough_for_the_others_and_short_enough_for_the_form(seconds) -> None:
    _, rhythm = looked(seconds)
    rhythm.note()

    assert LEAST_REST <= rhythm.due() <= MOST_REST < 1
    if rhythm.due() < MOST_REST:
        assert seconds <= rhythm.due() * SHARE


def test_without_a_change_there_is_a_look_now_and_then() -> None:
    clock, rhythm = looked()

    assert rhythm.due() == AT_LEAST_EVERY
    clock.now = AT_LEAST_EVERY
    assert rhythm.due() == 0


def test_a_wished_look_comes_at_its_time_and_once() -> None:
    clock, rhythm = looked()
    rhythm.wish(3)
    rhythm.wish(2)

    assert rhythm.due() == 2
    clock.now = 2
    assert rhythm.due() == 0
    rhythm.begin()
    rhythm.end(0)
    assert rhythm.due() == AT_LEAST_EVERY


def test_a_wished_look_waits_for_the_end_of_the_rest() -> None:
    _, rhythm = looked()
    rhythm.wish(0)

    assert rhythm.due() == LEAST_REST


@pytest.mark.usefixtures("streams")
async def test_a_change_reaches_each_form_and_is_found_out_once() -> None:
    hub, clients = Hub(), [Client(Form("")) for _ in range(100)]
    async with hub.following(*clients):
        for client in clients:
            await client.until("0")
        Form.asked.clear()

        Form.shows[""] = 1
        hub.view.wake()
        for client in clients:
            await client.until("0", "1")

    assert Form.asked == [""]


@pytest.mark.usefixtures("streams")
async def test_changes_that_no_form_shows_send_nothing() -> None:
    hub, one, other = Hub(), Client(Form("")), Client(Form("other"))
    async with hub.following(one, other):
        await one.until("0")
        await other.until("0")
        for _ in range(20):
            hub.view.wake()
            await asyncio.sleep(MOST_REST)
        Form.shows["other"] = 1
        hub.view.wake()
        await other.until("0", "1")

        assert one.shown == ["0"]


@pytest.mark.usefixtures("streams")
async def test_a_hundred_changes_in_a_row_cost_a_few_looks() -> None:
    hub, client = Hub(), Client(Form(""))
    async with hub.following(client):
        await client.until("0")
        Form.asked.clear()
        for number in range(1, 101):
            Form.shows[""] = number
            hub.view.wake()
        await client.until("0", "100")

    assert len(Form.asked) <= 2


@pytest.mark.parametrize(
    ("for_all", "work", "rest"), [(True, 0.03, 0.6), (False, 0.2, 2.0)], ids=["for all", "alone"]
)
@pytest.mark.usefixtures("streams")
async def test_the_more_work_a_look_was_the_longer_the_hub_rests(
    clock, for_all, work, rest
) -> None:
    class Costly(Form):
        async def answer(self) -> Shown:
            clock.worked += work
            return await super().answer()

    hub, client = Hub(), Client(Costly("", for_all))
    async with hub.following(client):
        await client.until("0")
        before = clock.now
        Form.shows[""] = 1
        hub.view.wake()
        await client.until("0", "1")

    assert clock.now - before == pytest.approx(rest)


@pytest.mark.usefixtures("streams")
async def test_an_answer_for_one_form_is_sent_to_no_other() -> None:
    hub, forms = Hub(), [Form("", for_all=False), Form("", for_all=False)]
    one, other = map(Client, forms)
    async with hub.following(one, other):
        await one.until("0")
        await other.until("0")

    assert Form.asked.count("") >= 2


@pytest.mark.usefixtures("streams")
async def test_a_form_that_cannot_be_answered_ends_and_the_others_go_on() -> None:
    hub, broken, other = Hub(), Client(Form("")), Client(Form("other"))
    Form.shows[""] = misconfigured("no profile_list")
    async with hub.following(broken, other):
        await other.until("0")
        assert await broken.stream.ended == b""
        Form.shows["other"] = 1
        hub.view.wake()
        await other.until("0", "1")


@pytest.mark.usefixtures("streams")
async def test_an_error_of_ours_ends_one_form_and_is_logged(caplog) -> None:
    hub, broken, other = Hub(), Client(Form("")), Client(Form("other"))
    Form.shows[""] = ZeroDivisionError()
    async with hub.following(broken, other):
        await other.until("0")
        await broken.stream.ended

    assert "An open form can't be kept current" in caplog.text


@pytest.mark.usefixtures("streams")
async def test_nothing_runs_and_nothing_is_kept_while_no_form_is_open() -> None:
    hub, before = Hub(), asyncio.all_tasks()
    listeners = len(hub.view._listeners)
    for _ in range(3):
        clients = [Client(Form("")) for _ in range(10)]
        async with hub.following(*clients):
            for client in clients:
                await client.until("0")
    await asyncio.sleep(0)

    assert asyncio.all_tasks() == before
    assert len(hub.view._listeners) == listeners
    assert len(hub.broadcast._streams) == 0
    assert not hub.broadcast._events
    assert not hub.broadcast._newcomers
    hub.view.wake()


@pytest.mark.usefixtures("streams")
async def test_a_form_that_is_opened_after_a_quiet_time_shows_what_is_true_now() -> None:
    hub = Hub()
    async with hub.following(first := Client(Form(""))):
        await first.until("0")
    Form.shows[""] = 1
    hub.view.wake()

    async with hub.following(second := Client(Form(""))):
        await second.until("1")


@pytest.mark.usefixtures("streams")
async def test_a_form_whose_time_is_over_is_asked_to_come_again() -> None:
    hub, client = Hub(), Client(Form(""), lasts=60)
    async with hub.following(client):
        assert await asyncio.wait_for(client.stream.ended, 70) == AGAIN


class Hanging(Form):
    async def answer(self) -> Shown:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("never")


class Cancelled(Form):
    async def answer(self) -> Shown:
        raise asyncio.CancelledError


@pytest.mark.usefixtures("streams")
@pytest.mark.each_python
@pytest.mark.parametrize("kind", [Hanging, Cancelled])
async def test_an_answer_that_never_comes_keeps_no_other_form_waiting(kind) -> None:
    hub, good, bad = Hub(), Client(Form("")), Client(kind("other"))
    async with hub.following(bad, good):
        await good.until("0")
        Form.shows[""] = 1
        hub.view.wake()
        await good.until("0", "1")
        bad.stream.lose()
        Form.shows[""] = 2
        hub.view.wake()
        await good.until("0", "1", "2")
    assert not hub.broadcast._answering


@pytest.mark.usefixtures("streams")
async def test_a_form_whose_answer_takes_too_long_asks_by_itself() -> None:
    hub, slow = Hub(), Client(Hanging(""))
    async with hub.following(slow):
        assert await slow.stream.ended == FULL


class SlowlyRenewed(Form):
    may_change = True

    async def renew(self) -> None:
        await asyncio.get_running_loop().create_future()


@pytest.mark.usefixtures("streams")
async def test_administrators_functions_that_hang_keep_no_stream_beyond_its_time() -> None:
    hub, slow = Hub(), [Client(SlowlyRenewed("")) for _ in range(10)]
    short = Client(Form(""), lasts=120)
    async with hub.following(*slow, short):
        assert await asyncio.wait_for(short.stream.ended, 130) == AGAIN


@pytest.mark.usefixtures("streams")
async def test_a_client_that_does_not_read_is_given_up() -> None:
    hub = Hub()
    never = asyncio.get_running_loop().create_future()
    clock = asyncio.get_running_loop().time
    stream = Stream(Form(""), lambda _: never, inf, always, clock)
    stuck: Any = SimpleNamespace(stream=stream)
    async with hub.following(stuck):
        assert await stuck.stream.ended is None


@pytest.mark.usefixtures("streams")
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


@pytest.mark.usefixtures("streams")
async def test_if_rights_cannot_be_read_the_streams_end_and_the_log_says_it_once(
    caplog, monkeypatch
) -> None:
    monkeypatch.setattr("gpuspawner.web.stream.open_streams.CHECK_SECONDS", 0.0)  # all at once

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


@pytest.mark.usefixtures("streams")
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
