"""Places that outlast the hub."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.line import stored_places
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.reservations.place_in_line import KeptPlace, Wish

pytestmark = pytest.mark.each_python

PLACE = {"since": 1.0, "wish": "here", "options": {}}
ANN, BOB, EVE = ("ann", ""), ("bob", "large"), ("eve", "")


def place(since):
    return KeptPlace(since, Wish.HERE)


@given(st.floats(0, 1e9), st.sampled_from((Wish.HERE, Wish.ANYWAY)))
def test_a_place_is_read_as_it_was_written(since, wish):
    written = KeptPlace(since, wish, {"gpus": 1}).written()

    found = KeptPlace.read(written)
    assert found is not None
    assert found.written() == written


@pytest.mark.parametrize(
    "stored",
    [
        *(None, "here", [], {}, {"since": 1.0}, {"wish": "here"}, {"options": {}}),
        *({**PLACE, "since": it} for it in ("1", None, -1, nan, inf, 10**400)),
        *({**PLACE, "wish": it} for it in ("not", "now", ["here"])),
        *({**PLACE, "options": it} for it in (None, "gpus", [1])),
    ],
)
def test_what_is_no_place_isnt_one(stored):
    assert KeptPlace.read(stored) is None


def test_no_place_lies_in_the_future_beyond_what_clocks_differ_by(monkeypatch):
    monkeypatch.setattr(stored_places.time, "time", lambda: 1e9)

    assert KeptPlace.read({**PLACE, "since": 1e9 + 60})
    assert KeptPlace.read({**PLACE, "since": 1e9 + 61}) is None


def test_a_stored_place_isnt_kept_for_who_has_come_since_the_hub_started():
    places = StoredPlaces()
    places.pop(BOB)

    places.keep_stored({ANN: place(1.0), BOB: place(2.0)})

    assert places.servers() == (ANN,)


def test_servers_come_back_in_the_order_of_their_places():
    places = StoredPlaces()
    for server, since in ((BOB, 2.0), (EVE, 3.0), (ANN, 1.0)):
        places.keep(server, place(since))

    assert places.servers() == (ANN, BOB, EVE)
    assert places.find(BOB) == place(2.0)
    assert places.find(("bob", "")) is None
    assert [places.before(it) for it in (1.0, 2.5, 9.0)] == [0, 2, 3]


def test_a_place_is_removed_once():
    places = StoredPlaces()
    places.keep(ANN, place(1.0))

    assert places.are_awaited
    assert places.pop(ANN) == place(1.0)
    assert places.pop(ANN) is None
    assert places.find(ANN) is None
    assert not places.are_awaited


def test_nobody_waits_for_those_who_havent_come_back_after_a_minute(clock):
    places = StoredPlaces()
    places.keep(ANN, place(1.0))

    clock.now += 59.9
    assert places.are_awaited
    assert places.before(2.0) == 1

    clock.now += 0.1
    assert not places.are_awaited
    assert places.before(2.0) == 0
    assert places.pop(ANN) == place(1.0)  # who comes later still has the place


def test_the_first_who_is_awaited_holds_up_those_who_came_later():
    places = StoredPlaces()
    assert places.first == inf
    places.keep(BOB, place(20.0))
    places.keep(ANN, place(10.0))
    assert places.first == 10.0
    places.pop(ANN)
    assert places.first == 20.0
