"""Which refusals belong to which picture, and whether the twin knows if there was room for them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localcluster import LocalCluster
from tests.race.recording import Line
from tests.race.stage import SIZES
from tests.race.twin import Picture, Twin, moments, twin_on

TAINT = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
EMPTY = [Line("node", f"node-{size}-0", size) for size in SIZES]
LARGEST = EMPTY[-1]


@pytest.fixture(scope="module")
def twin(bare_cluster: LocalCluster) -> Iterator[Twin]:
    with twin_on(bare_cluster) as twin:
        yield twin


def test_a_refusal_belongs_to_the_picture_before_it() -> None:
    (moment,) = moments([bound("a"), refused("late"), Line("gone", "a")])

    assert moment.picture == Picture(bound={"a": bound("a")})
    assert moment.refusals == [refused("late")]


def test_refusals_between_two_changes_share_a_moment() -> None:
    (moment,) = moments([bound("a"), refused("x"), Line("accepted", "z"), refused("y")])

    assert [line.name for line in moment.refusals] == ["x", "y"]


def test_an_advice_to_try_again_is_not_a_refusal_for_lack_of_room() -> None:
    assert list(moments([refused("x", reason="try-again")])) == []


def test_changes_before_the_first_counted_line_are_in_the_picture() -> None:
    recording = [bound("left"), refused("earlier"), bound("a"), refused("x")]

    (moment,) = moments(recording, since=2)

    assert set(moment.picture.bound) == {"left", "a"}
    assert [line.name for line in moment.refusals] == ["x"]


def test_a_node_is_not_ready_only_in_the_pictures_of_that_time() -> None:
    ready, away = Line("node", "node", 1), Line("node", "node", 1, taints=[TAINT])

    found = moments([ready, away, refused("x"), ready, refused("y")])

    assert [moment.picture.nodes for moment in found] == [{"node": away}, {"node": ready}]


def test_a_deleted_node_is_in_no_later_picture() -> None:
    (moment,) = moments([LARGEST, Line("node-gone", LARGEST.name), refused("x")])

    assert moment.picture == Picture()


def test_after_random_changes_it_finds_the_refused_pods_that_would_have_fitted(twin: Twin) -> None:
    recording, room = come_and_go(random.Random(0), moments=60)

    wrong = twin.would_have_fitted(recording)

    assert {each.refusal.name for each in wrong} == room
    assert 10 < len(room) < 50


def test_pods_bound_before_the_first_counted_line_take_room(twin: Twin) -> None:
    full = [bound(f"p{node.gpus}", node.name, node.gpus) for node in EMPTY]
    recording = [*EMPTY, *full, refused("late")]

    assert twin.would_have_fitted(recording, since=len(recording) - 1) == []


@pytest.mark.parametrize(
    "away",
    [
        replace(LARGEST, taints=[TAINT]),
        replace(LARGEST, unschedulable=True),
        replace(LARGEST, gpus=0),
    ],
)
def test_a_node_that_the_hub_saw_unusable_has_no_room_until_it_is_back(
    twin: Twin, away: Line
) -> None:
    recording = [*EMPTY, away, refused("meanwhile", 8), LARGEST, refused("afterwards", 8)]

    wrong = twin.would_have_fitted(recording)

    assert [(each.refusal.name, each.node) for each in wrong] == [("afterwards", LARGEST.name)]


def test_a_deleted_node_has_no_room(twin: Twin) -> None:
    recording = [*EMPTY, Line("node-gone", LARGEST.name), refused("late", 8)]

    assert twin.would_have_fitted(recording) == []


def come_and_go(dice: random.Random, moments: int) -> tuple[list[Line], set[str]]:
    """Return a recording of random pods and refusals, and the refused that had room."""
    recording, room = list(EMPTY), set()
    free = {node.name: node.gpus for node in EMPTY}
    pods: dict[str, Line] = {}
    for moment in range(moments):
        name, gpus = f"p{dice.randrange(12)}", dice.choice([1, 2, 3, 4, 8])
        places = [place for place in free if free[place] >= gpus]
        if name in pods:
            pod = pods.pop(name)
            free[pod.node] += pod.gpus
            recording.append(Line("gone", name))
        elif places:
            pods[name] = bound(name, dice.choice(places), gpus)
            free[pods[name].node] -= gpus
            recording.append(pods[name])
        recording.append(refused(f"refused{moment}", asked := dice.choice([1, 2, 3, 4, 8])))
        if max(free.values()) >= asked:
            room.add(f"refused{moment}")
    return recording, room


def bound(name: str, place: str = "node", gpus: int = 1) -> Line:
    return Line("bound", name, gpus, place)


def refused(name: str, gpus: int = 1, reason: str = "busy") -> Line:
    return Line("refused", name, gpus, reason=reason)
