"""What a hub has stored of a server, read by another version than the one that stored it.

Never change a text below: it's what the hubs of people have in their databases.
"""

from datetime import UTC, datetime

import msgspec
import pytest

from gpuspawner.launch import server_state
from gpuspawner.reservations import granted
from gpuspawner.reservations.granted import Granted
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from gpuspawner.troubles.ending import Ending, written
from gpuspawner.troubles.trouble import Kind

BY_0_1 = """{"pod_name": "jupyter-ann", "namespace": "jhub", "gpuspawner": {
    "ending": {"kind": "out-of-memory", "moment": "2026-11-27T04:00:00Z", "seconds": 3600,
        "memory": 8589934592, "node": "gpu-1", "last_words": "Killed"},
    "began": "2026-11-27T03:59:00+00:00",
    "place": {"since": 1764216000.5, "wish": "here", "options": {"gpus": 1}},
    "granted":
        "{\\"accelerator\\":\\"a100\\",\\"policies\\":[\\"course\\"],\\"groups\\":[\\"ml\\"],\\"lifetime\\":3600,\\"pod\\":\\"u1\\"}"
}}"""  # fmt: skip


def by_0_1():
    return msgspec.json.decode(BY_0_1)


def by_a_later_version():
    """The same with keys that this version doesn't know, everywhere."""
    state = by_0_1()
    ours = state["gpuspawner"]
    more = {**msgspec.json.decode(ours["granted"]), "later": {"a": [1]}}
    ours |= {"granted": msgspec.json.encode(more).decode(), "later": {"version": 2}}
    for name in ("ending", "place"):
        ours[name] |= {"later": [1, None]}
    return state


@pytest.mark.parametrize("state", [by_0_1(), by_a_later_version()], ids=["earlier", "later"])
def test_all_that_0_1_stores_is_read(state):
    at = datetime(2026, 11, 27, 4, 0, tzinfo=UTC)

    assert server_state.last_of(state) == Ending(
        Kind.OUT_OF_MEMORY, at, seconds=3600, memory=8 << 30, node="gpu-1", last_words="Killed"
    )
    assert server_state.place_of(state) == KeptPlace(1764216000.5, Wish.HERE, {"gpus": 1})
    assert granted.stored(state["gpuspawner"]) == Granted("a100", ("course",), ("ml",), 3600, "u1")


def test_what_a_later_version_stores_otherwise_is_nothing_to_this_one():
    """A hub that goes back starts all the same."""
    state = by_0_1()
    state["gpuspawner"] |= {"ending": {"kind": "of-later"}, "place": ["later"], "granted": "[2]"}

    assert server_state.last_of(state) is None
    assert server_state.place_of(state) is None
    assert granted.stored(state["gpuspawner"]) == Granted()


def test_0_1_reads_what_this_version_stores():
    ours = by_0_1()["gpuspawner"]
    last, place = server_state.last_of(by_0_1()), server_state.place_of(by_0_1())
    assert last
    assert place

    assert written(last).items() >= ours["ending"].items()
    assert place.written().items() >= ours["place"].items()
    again = msgspec.json.decode(granted.stored(ours).written())
    assert again.items() >= msgspec.json.decode(ours["granted"]).items()
