"""Replays of recordings: which refusals belong to which picture."""

from __future__ import annotations

from tests.race.replay import Line, Picture, moments

READY = {"gpus": 1, "taints": [], "unschedulable": False}


def test_a_refusal_belongs_to_the_picture_before_it() -> None:
    refusal = refused("late")

    (moment,) = moments([bound("a"), refusal, gone("a")])

    assert moment.picture == Picture(bound={"a": ("node", 1)})
    assert moment.refusals == [refusal]


def test_refusals_between_two_changes_share_a_moment() -> None:
    recording = [
        bound("a"),
        refused("x"),
        {"what": "reservations", "name": "", "gpus": 0},
        refused("y"),
    ]

    (moment,) = moments(recording)

    assert [line["name"] for line in moment.refusals] == ["x", "y"]


def test_an_advice_to_try_again_is_not_a_refusal_for_lack_of_room() -> None:
    assert list(moments([refused("x", reason="try-again")])) == []


def test_changes_before_the_first_counted_line_are_in_the_picture() -> None:
    recording = [bound("left"), refused("earlier"), bound("a"), refused("x")]

    (moment,) = moments(recording, since=2)

    assert set(moment.picture.bound) == {"left", "a"}
    assert [line["name"] for line in moment.refusals] == ["x"]


def test_a_node_is_not_ready_only_in_the_pictures_of_that_time() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
    away = {**READY, "taints": [taint]}

    recording = [node(READY), node(away), refused("x"), node(READY), refused("y")]

    assert [moment.picture.nodes for moment in moments(recording)] == [
        {"node": away},
        {"node": READY},
    ]


def test_a_deleted_node_is_in_no_later_picture() -> None:
    (moment,) = moments([node(READY), {"what": "node-gone", "name": "node"}, refused("x")])

    assert moment.picture == Picture()


def bound(name: str) -> Line:
    return {"what": "bound", "name": name, "node": "node", "gpus": 1}


def gone(name: str) -> Line:
    return {"what": "gone", "name": name}


def node(room: Line) -> Line:
    return {"what": "node", "name": "node", **room}


def refused(name: str, reason: str = "busy") -> Line:
    return {"what": "refused", "name": name, "gpus": 1, "reason": reason}
