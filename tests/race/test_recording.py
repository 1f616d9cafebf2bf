"""The recording of a view's changes, in their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuspawner.scheduling.state import ClusterState
from tests.race import recording
from tests.race.replay import Line
from tests.unit.preflight.worlds import NAMESPACE, StillView, node, pod


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for method in ("put", "remove"):  # so that monkeypatch restores it
        monkeypatch.setattr(ClusterState, method, getattr(ClusterState, method))
    path = tmp_path / "recording.jsonl"
    recording.Recorder(path, NAMESPACE).watch_the_view()
    return path


def test_each_change_of_a_node_is_recorded(path: Path) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
    view = StillView(("Node", node("n", 2)))
    view.put("Node", node("n", 2, taints=[taint]))
    view.state.remove("Node", "", "n")

    assert lines(path) == [
        {"what": "node", "name": "n", "gpus": 2, "taints": [], "unschedulable": False},
        {"what": "node", "name": "n", "gpus": 2, "taints": [taint], "unschedulable": False},
        {"what": "node-gone", "name": "n"},
    ]


def test_a_pod_is_recorded_when_it_is_bound_and_when_it_is_deleted(path: Path) -> None:
    view = StillView(("Pod", pod("a", 2)), ("Pod", pod("a", 2, on="n")))
    view.remove_pod("a")

    assert lines(path) == [
        {"what": "bound", "name": "a", "node": "n", "gpus": 2},
        {"what": "gone", "name": "a"},
    ]


def test_a_bound_pod_is_gone_when_a_new_list_has_another_pod_of_its_name(path: Path) -> None:
    StillView(("Pod", pod("a", 2, on="n")), ("Pod", pod("a", 1)))

    assert lines(path)[-1] == {"what": "gone", "name": "a"}


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]
