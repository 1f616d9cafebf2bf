"""The twin and arithmetic agree whether there was room for a refused request."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from localcluster import LocalCluster
from tests.race.replay import Line
from tests.race.stage import SIZES, twin_on
from tests.race.twin import Twin

ASKED = (1, 2, 3, 4, 8)
NOT_READY = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def twin(bare_cluster: LocalCluster) -> Iterator[Twin]:
    with twin_on(bare_cluster) as twin:
        yield twin


def test_after_random_changes_it_finds_the_refused_pods_that_would_have_fitted(twin: Twin) -> None:
    recording, room = come_and_go(random.Random(0), moments=60)

    wrong = twin.would_have_fitted(recording)

    assert {each.refusal["name"] for each in wrong} == room
    assert 10 < len(room) < 50


def test_pods_bound_before_the_first_counted_line_take_room(twin: Twin) -> None:
    full = [bound(f"p{size}", f"node-{size}-0", size) for size in SIZES]
    recording = [*empty(), *full, refused("late", 1)]

    assert twin.would_have_fitted(recording, since=len(recording) - 1) == []


@pytest.mark.parametrize(
    "away", [{"gpus": 8, "taints": [NOT_READY]}, {"gpus": 8, "unschedulable": True}, {"gpus": 0}]
)
def test_a_node_that_the_hub_saw_unusable_has_no_room_until_it_is_back(
    twin: Twin, away: Line
) -> None:
    gone, back = node("node-8-0", **away), node("node-8-0", 8)
    recording = [*empty(), gone, refused("meanwhile", 8), back, refused("afterwards", 8)]

    wrong = twin.would_have_fitted(recording)

    assert [(each.refusal["name"], each.node) for each in wrong] == [("afterwards", "node-8-0")]


def test_a_deleted_node_has_no_room(twin: Twin) -> None:
    recording = [*empty(), {"what": "node-gone", "name": "node-8-0"}, refused("late", 8)]

    assert twin.would_have_fitted(recording) == []


def come_and_go(dice: random.Random, moments: int) -> tuple[list[Line], set[str]]:
    """Return a recording of random pods and refusals, and the refused that had room."""
    recording, room = empty(), set()
    free = {f"node-{size}-0": size for size in SIZES}
    pods: dict[str, tuple[str, int]] = {}
    for moment in range(moments):
        name, gpus = f"p{dice.randrange(12)}", dice.choice(ASKED)
        places = [place for place in free if free[place] >= gpus]
        if name in pods:
            place, held = pods.pop(name)
            free[place] += held
            recording.append({"what": "gone", "name": name})
        elif places:
            place = dice.choice(places)
            pods[name] = place, gpus
            free[place] -= gpus
            recording.append(bound(name, place, gpus))
        recording.append(refused(f"refused{moment}", asked := dice.choice(ASKED)))
        if max(free.values()) >= asked:
            room.add(f"refused{moment}")
    return recording, room


def empty() -> list[Line]:
    return [node(f"node-{size}-0", size) for size in SIZES]


def node(
    name: str, gpus: int, taints: list[dict[str, str]] | None = None, unschedulable: bool = False
) -> Line:
    room = {"gpus": gpus, "taints": taints or [], "unschedulable": unschedulable}
    return {"what": "node", "name": name, **room}


def bound(name: str, place: str, gpus: int) -> Line:
    return {"what": "bound", "name": name, "node": place, "gpus": gpus}


def refused(name: str, gpus: int) -> Line:
    return {"what": "refused", "name": name, "gpus": gpus, "reason": "busy"}
