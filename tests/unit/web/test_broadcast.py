"""What many open forms show is found out once, and sent only to those that show something else."""

import asyncio
import logging
from functools import partial
from math import inf
from types import SimpleNamespace

import pytest

from gpuspawner.start.refusal import misconfigured
from gpuspawner.web import broadcast
from gpuspawner.web.broadcast import AT_LEAST_EVERY, LEAST_REST, MOST_REST, SHARE, Rhythm
from gpuspawner.web.open_streams import AGAIN, CHECK_SECONDS, FULL, Stream
from tests.unit.makers.clocks import Clock
from tests.unit.makers.following import Client, Form, Hub, always


@pytest.fixture(autouse=True)
def streams(clock, monkeypatch):
    """Let a hub's rests take no time, and set anew what forms show."""
    monkeypatch.setattr(broadcast, "Rhythm", partial(Rhythm, clock))
    monkeypatch.setattr(Form, "shows", {"": 0, "other": 0}, raising=False)
    monkeypatch.setattr(Form, "asked", [], raising=False)


def looked(seconds=0.0):
    """A rhythm after one look that took so much processor time."""
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.end(seconds)
    return clock, rhythm


def test_a_change_after_a_quiet_time_is_looked_at_at_once():
    clock, rhythm = looked()
    clock.now = 3

    assert rhythm.due() > 0
    rhythm.note()
    assert rhythm.due() == 0


def test_a_change_soon_after_a_look_waits_for_the_end_of_the_rest():
    clock, rhythm = looked()
    clock.now = 0.1

    rhythm.note()

    assert rhythm.due() == pytest.approx(LEAST_REST - 0.1)


def test_a_change_during_a_look_is_looked_at_afterwards():
    clock = Clock(0.0)
    rhythm = Rhythm(clock)
    rhythm.begin()
    rhythm.note()
    rhythm.end(0.001)
    clock.now = LEAST_REST

    assert rhythm.due() == 0


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.5, 10.0])
def test_the_rest_is_long_enough_for_the_others_and_short_enough_for_the_form(seconds):
    _, rhythm = looked(seconds)
    rhythm.note()

    assert LEAST_REST <= rhythm.due() <= MOST_REST < 1
    if rhythm.due() < MOST_REST:
        assert seconds <= rhythm.due() * SHARE


def test_without_a_change_there_is_a_look_now_and_then():
    clock, rhythm = looked()

    assert rhythm.due() == AT_LEAST_EVERY
    clock.now = AT_LEAST_EVERY
    assert rhythm.due() == 0


def test_a_wished_look_comes_at_its_time_and_once():
    clock, rhythm = looked()
    rhythm.wish(3)
    rhythm.wish(2)

    assert rhythm.due() == 2
    clock.now = 2
    assert rhythm.due() == 0
    rhythm.begin()
    rhythm.end(0)
    assert rhythm.due() == AT_LEAST_EVERY


async def test_a_change_reaches_each_form_and_is_found_out_once():
    hub, clients = Hub(), [Client(Form("")) for _ in range(100)]
    async with hub.showing(*clients):
        Form.asked.clear()

        hub.shows(1)
        for client in clients:
            await client.until("0", "1")

    assert Form.asked == [""]


async def test_changes_that_no_form_shows_send_nothing():
    hub, one, other = Hub(), Client(Form("")), Client(Form("other"))
    async with hub.showing(one, other):
        for _ in range(20):
            hub.view.wake()
            await asyncio.sleep(MOST_REST)
        hub.shows(1, "other")
        await other.until("0", "1")

        assert one.shown == ["0"]


async def test_a_hundred_changes_in_a_row_cost_a_few_looks():
    hub, client = Hub(), Client(Form(""))
    async with hub.showing(client):
        Form.asked.clear()
        for number in range(1, 101):
            hub.shows(number)
        await client.until("0", "100")

    assert len(Form.asked) <= 2


@pytest.mark.parametrize(
    ("for_all", "work", "rest"), [(True, 0.03, 0.6), (False, 0.2, 2.0)], ids=["for all", "alone"]
)
async def test_the_more_work_a_look_was_the_longer_the_hub_rests(clock, for_all, work, rest):
    class Costly(Form):
        async def answer(self):
            clock.worked += work
            return await super().answer()

    hub, client = Hub(), Client(Costly("", for_all))
    async with hub.showing(client):
        before = clock.now
        hub.shows(1)
        await client.until("0", "1")

    assert clock.now - before == pytest.approx(rest)


async def test_an_answer_for_one_form_is_sent_to_no_other():
    hub, forms = Hub(), [Form("", for_all=False), Form("", for_all=False)]
    one, other = map(Client, forms)
    async with hub.showing(one, other):
        pass

    assert Form.asked.count("") >= 2


async def test_a_form_that_cannot_be_answered_ends_and_the_others_go_on():
    hub, broken, other = Hub(), Client(Form("")), Client(Form("other"))
    Form.shows[""] = misconfigured("no profile_list")
    async with hub.following(broken, other):
        await other.until("0")
        assert await broken.stream.ended == b""
        hub.shows(1, "other")
        await other.until("0", "1")


async def test_an_error_of_ours_ends_one_form_and_is_logged(caplog):
    hub, broken, other = Hub(), Client(Form("")), Client(Form("other"))
    Form.shows[""] = ZeroDivisionError()
    async with hub.following(broken, other):
        await other.until("0")
        await broken.stream.ended

    assert "An open form can't be kept current" in caplog.text


async def test_nothing_runs_and_nothing_is_kept_while_no_form_is_open():
    hub, before = Hub(), asyncio.all_tasks()
    listeners = len(hub.view._listeners)
    for _ in range(3):
        clients = [Client(Form("")) for _ in range(10)]
        async with hub.showing(*clients):
            pass
    await asyncio.sleep(0)

    assert asyncio.all_tasks() == before
    assert len(hub.view._listeners) == listeners
    assert len(hub.broadcast._streams) == 0
    assert not hub.broadcast._events
    assert not hub.broadcast._newcomers
    hub.view.wake()


async def test_a_form_that_is_opened_after_a_quiet_time_shows_what_is_true_now():
    hub = Hub()
    async with hub.showing(Client(Form(""))):
        pass
    hub.shows(1)

    async with hub.following(second := Client(Form(""))):
        await second.until("1")


async def test_a_form_whose_time_is_over_is_asked_to_come_again():
    hub, client = Hub(), Client(Form(""), lasts=60)
    async with hub.following(client):
        assert await asyncio.wait_for(client.stream.ended, 70) == AGAIN


class Hanging(Form):
    async def answer(self):
        await asyncio.get_running_loop().create_future()
        raise AssertionError("never")


class Cancelled(Form):
    async def answer(self):
        raise asyncio.CancelledError


@pytest.mark.each_python
@pytest.mark.parametrize("kind", [Hanging, Cancelled])
async def test_an_answer_that_never_comes_keeps_no_other_form_waiting(kind):
    hub, good, bad = Hub(), Client(Form("")), Client(kind("other"))
    async with hub.following(bad, good):
        await good.until("0")
        hub.shows(1)
        await good.until("0", "1")
        bad.stream.lose()
        hub.shows(2)
        await good.until("0", "1", "2")
    assert not hub.broadcast._answering


async def test_a_form_whose_answer_takes_too_long_asks_by_itself():
    hub, slow = Hub(), Client(Hanging(""))
    async with hub.following(slow):
        assert await slow.stream.ended == FULL


class SlowlyRenewed(Form):
    may_change = True

    async def renew(self):
        await asyncio.get_running_loop().create_future()


async def test_administrators_functions_that_hang_keep_no_stream_beyond_its_time():
    hub, slow = Hub(), [Client(SlowlyRenewed("")) for _ in range(10)]
    short = Client(Form(""), lasts=120)
    async with hub.following(*slow, short):
        assert await asyncio.wait_for(short.stream.ended, 130) == AGAIN


async def test_a_client_that_does_not_read_is_given_up():
    hub = Hub()
    never = asyncio.get_running_loop().create_future()
    clock = asyncio.get_running_loop().time
    stream = Stream(Form(""), lambda _: never, inf, always, clock)
    stuck = SimpleNamespace(stream=stream)
    async with hub.following(stuck):
        assert await stuck.stream.ended is None


async def test_a_client_that_loses_its_rights_has_to_open_another_stream_and_others_stay():
    rights, checked = {"good", "bad"}, asyncio.Event()

    def good():
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
):
    monkeypatch.setattr("gpuspawner.web.open_streams.CHECK_SECONDS", 0.0)  # all at once

    def fails():
        raise OSError("the database is away")

    hub, unreadable = Hub(), [Client(Form(""), may_stay=fails) for _ in range(3)]
    good = Client(Form("other"))
    with caplog.at_level(logging.ERROR):
        async with hub.following(*unreadable, good):
            for client in unreadable:
                assert await client.stream.ended == b""
            hub.shows(1, "other")
            await good.until("0", "1")
    assert [it.message for it in caplog.records] == ["The rights of open forms can't be checked"]


async def test_streams_that_were_opened_together_are_checked_at_different_times():
    now = 0.0
    streams = [Stream(Form(""), lambda _: None, 1e9, always, lambda: now) for _ in range(1000)]
    due = []
    for second in range(5, 125, 5):
        now = float(second)
        due.append(sum(it.is_to_check() for it in streams))

    assert sum(due) == 2 * len(streams)
    assert max(due) < 2 * len(streams) / 12
