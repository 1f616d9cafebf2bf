"""Servers that were in line when the hub ended are started again."""

import asyncio
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.launch.server_state import place_of
from gpuspawner.line import resuming
from gpuspawner.line.stored_places import PATIENCE_SECONDS, StoredPlaces
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.worlds import StillView, settle

pytestmark = pytest.mark.usefixtures("clock")


ANYWAY = "ann", {"gpus": 1, "wait": "anyway"}
"""A start of Ann's, and its options."""


class Hub:
    """A hub's answers to starts; a server joins the line a moment after it was accepted."""

    def __init__(self):
        self.stored_places = StoredPlaces()
        self.view = StillView()
        self.active = set()
        self.states = {}
        self.statuses = {}
        self.asked = []
        self.awaited = []
        self.stopping = set()
        """Those whose next request comes while the hub stops their server."""
        self.deleted = set()

    def stores(self, user, since, wish=Wish.ANYWAY):
        place = KeptPlace(since, wish, {"gpus": 1}).written()
        self.states[user, ""] = {"gpuspawner": {"place": place}}

    async def start(self, named, options):
        user, server = named
        self.asked.append((user, options))
        self.awaited.append(self.stored_places.are_awaited)
        await asyncio.sleep(0)
        if user in self.stopping:
            self.stopping.remove(user)
            self.active.add((user, server))
            asyncio.get_running_loop().call_later(2.0, self.active.clear)
        status = self.statuses.get(user, [202]).pop(0)
        if status == 0:
            raise TimeoutError
        if status in {202, 409}:  # it joins, or our second gate refuses it
            self.stored_places.pop((user, server))
        return status

    async def change_state(self, server, change):
        self.states[server] = change(self.states[server])

    def has_stored(self, user):
        """Whether another restart would start the server."""
        return place_of(self.states[user, ""]) is not None


@pytest.fixture
def hub(monkeypatch):
    hub = Hub()

    async def answers():
        return True

    waiting, db = resuming.waiting, HubDatabase().session
    monkeypatch.setattr(waiting, "hub", lambda: SimpleNamespace(db=db))
    monkeypatch.setattr(waiting, "answers", answers)
    monkeypatch.setattr(waiting, "start", hub.start)
    monkeypatch.setattr(waiting, "stored_states", lambda _word: list(hub.states.items()))
    monkeypatch.setattr(waiting, "is_active", lambda server: server in hub.active)
    monkeypatch.setattr(waiting, "is_stored", lambda server: server not in hub.deleted)
    monkeypatch.setattr(waiting, "log_name", lambda server: server[0])
    monkeypatch.setattr(waiting, "change_state", hub.change_state)
    return hub


async def test_they_are_started_in_the_order_of_their_places_with_their_wishes(hub):
    hub.stores("bob", 20.0, Wish.HERE)
    hub.stores("ann", 10.0)

    await resuming.resume_all(hub.stored_places, hub.view)

    assert hub.asked == [ANYWAY, ("bob", {"gpus": 1, "wait": "here"})]
    assert not hub.stored_places.are_awaited


async def test_others_wait_for_them_even_if_the_hub_took_long_to_start(hub):
    await asyncio.sleep(2 * PATIENCE_SECONDS)
    hub.stores("ann", 10.0)

    await resuming.resume_all(hub.stored_places, hub.view)

    assert hub.awaited == [True]


@pytest.mark.parametrize("seen", [Live(0.5), Forbidden(("nodes",), "no")])
async def test_they_wait_until_the_hub_sees_the_cluster_or_never_will(hub, seen):
    hub.view.now = Unreachable("the cluster is away")
    hub.stores("ann", 10.0)
    resumed = asyncio.create_task(resuming.resume_all(hub.stored_places, hub.view))
    for health in (Unreachable("the cluster is away"), Reading(1.0), Stale(20.0, "a reason")):
        hub.view.now = health
        hub.view.wake()
        await settle()
    assert hub.asked == []
    assert hub.stored_places.find(("ann", "")) is not None

    await asyncio.sleep(2 * PATIENCE_SECONDS)
    hub.view.now = seen
    hub.view.wake()
    await resumed

    assert hub.asked == [ANYWAY]
    assert hub.awaited == [True]


@pytest.mark.parametrize("state", [None, {}, {"gpuspawner": {"place": {"since": "soon"}}}])
async def test_a_server_without_a_place_is_not_started(hub, state):
    hub.states["ann", ""] = state

    await resuming.resume_all(hub.stored_places, hub.view)

    assert hub.asked == []


async def test_who_has_left_a_line_of_this_hub_isnt_put_back_in_it(hub):
    hub.stored_places.pop(("ann", ""))  # as it joined
    hub.stores("ann", 10.0)  # the hub stops the wait, and clears this a second later

    await resuming.resume_all(hub.stored_places, hub.view)

    assert hub.asked == []


async def test_who_has_started_already_needs_no_place_any_more(hub):
    hub.stores("ann", 10.0)
    hub.active = {("ann", "")}

    await resuming.resume_all(hub.stored_places, hub.view)

    assert hub.asked == []


async def test_a_hub_that_can_t_be_asked_is_a_line_in_the_log(hub, monkeypatch, caplog):
    async def fails():
        raise ValueError("no such client")

    monkeypatch.setattr(resuming.waiting, "answers", fails)

    await resuming.resume_all(hub.stored_places, hub.view)

    assert "no such client" in caplog.text


@pytest.mark.parametrize("refusals", [[503, 429], [429] * 200], ids=["briefly", "for-minutes"])
async def test_a_start_that_the_hub_can_t_take_yet_is_tried_again(hub, refusals):
    hub.stores("ann", 10.0)
    hub.statuses["ann"] = [*refusals, 202]

    await resuming.resume_all(hub.stored_places, hub.view)

    assert len(hub.asked) == len(refusals) + 1
    assert not hub.stored_places.are_awaited
    assert hub.has_stored("ann")  # it waits


@pytest.mark.parametrize(
    "answers", [[400], [403], [404], [500], [0], [429] * 1000], ids=lambda it: f"{it[0]}x{len(it)}"
)
async def test_who_can_t_be_started_is_awaited_no_longer_nor_started_by_the_next_hub(hub, answers):
    hub.stores("ann", 10.0)
    hub.stores("bob", 20.0)
    hub.statuses["ann"] = answers

    await resuming.resume_all(hub.stored_places, hub.view)

    assert {user for user, _ in hub.asked} == {"ann", "bob"}
    assert hub.stored_places.find(("ann", "")) is None
    assert not hub.has_stored("ann")


async def test_a_server_that_its_owner_has_deleted_doesnt_come_back(hub):
    hub.stores("ann", 10.0)
    hub.statuses["ann"] = [429] * 1000
    resumed = asyncio.create_task(resuming.resume_all(hub.stored_places, hub.view))
    await asyncio.sleep(20)
    asked = len(hub.asked)

    hub.deleted.add(("ann", ""))
    await resumed

    assert len(hub.asked) == asked
    assert hub.stored_places.find(("ann", "")) is None


async def test_a_database_that_fails_keeps_nobody_else_from_coming_back(hub, monkeypatch, caplog):
    async def fails(*_):
        raise OSError("no disk")

    monkeypatch.setattr(resuming.waiting, "change_state", fails)
    hub.stores("ann", 10.0)
    hub.stores("bob", 20.0)
    hub.statuses["ann"] = [403]

    await resuming.resume_all(hub.stored_places, hub.view)

    assert [user for user, _ in hub.asked] == ["ann", "bob"]
    assert "no disk" in caplog.text


@pytest.mark.parametrize("name", ["stored_states", "start"])
@pytest.mark.usefixtures("no_threads")
async def test_a_database_that_fails_for_a_while_costs_nobody_the_place(hub, monkeypatch, name):
    does, faults = getattr(resuming.waiting, name), ["of_what"] * 100

    def fails(*given):
        if faults:
            resuming.waiting.hub().db.execute(text(f"SELECT {faults.pop()}"))
        return does(*given)

    monkeypatch.setattr(resuming.waiting, name, fails)
    hub.stores("ann", 10.0)
    hub.stores("bob", 20.0)

    await resuming.resume_all(hub.stored_places, hub.view)

    assert sorted(user for user, _ in hub.asked) == ["ann", "bob"]
    assert hub.has_stored("ann")
    assert not hub.stored_places.are_awaited


async def test_a_server_that_the_hub_still_checks_has_a_minute_afterwards(hub):
    hub.stored_places.keep(("ann", ""), KeptPlace(10.0, Wish.ANYWAY))
    hub.active.add(("ann", ""))
    hub.statuses["ann"] = [400, 202]
    resumed = asyncio.create_task(resuming.resume(hub.stored_places, ("ann", "")))
    await asyncio.sleep(2 * PATIENCE_SECONDS)
    assert not resumed.done()
    assert hub.asked == []

    hub.active.clear()
    hub.stopping.add("ann")
    await resumed

    assert len(hub.asked) == 2
    assert hub.stored_places.find(("ann", "")) is None


async def test_an_owner_who_was_faster_keeps_the_place(hub):
    hub.stores("ann", 10.0)
    hub.stored_places.keep(("ann", ""), KeptPlace(10.0, Wish.ANYWAY))
    hub.active.add(("ann", ""))
    resumed = asyncio.create_task(resuming.resume(hub.stored_places, ("ann", "")))
    await settle()
    assert hub.stored_places.find(("ann", "")) is not None

    hub.stored_places.pop(("ann", ""))  # it joins the line
    await resumed

    assert hub.asked == []
    assert hub.has_stored("ann")


async def test_nobody_waits_for_long_for_one_who_doesn_t_come_back(hub):
    hub.stores("ann", 10.0)
    hub.stores("bob", 20.0)
    hub.statuses["ann"] = [503] * 100 + [202]

    await resuming.resume_all(hub.stored_places, hub.view)

    assert "bob" in [user for user, _ in hub.asked[:20]]
