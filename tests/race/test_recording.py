"""The recording of a view's changes, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuspawner.scheduling.state import ClusterState
from tests.race.recording import Line, Recorder, Recording
from tests.unit.makers.worlds import NAMESPACE, StillView, node, pod


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    for method in ("put", "remove"):  # so that monkeypatch restores it
        monkeypatch.setattr(ClusterState, method, getattr(ClusterState, method))
    recording = Recording(tmp_path / "recording.jsonl")
    Recorder(recording.path, NAMESPACE).watch_the_view()
    return recording


def test_each_change_of_a_node_is_recorded(recording: Recording) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
    view = StillView(("Node", node("n", 2)))
    view.put("Node", node("n", 2, taints=[taint]))
    view.state.remove("Node", "", "n")

    assert recording.lines() == [
        Line("node", "n", 2),
        Line("node", "n", 2, taints=[taint]),
        Line("node-gone", "n"),
    ]


def test_a_pod_is_recorded_when_it_is_bound_and_when_it_is_deleted(recording: Recording) -> None:
    view = StillView(("Pod", pod("a", 2)), ("Pod", pod("a", 2, on="n")))
    view.remove_pod("a")

    assert recording.lines() == [Line("bound", "a", 2, "n"), Line("gone", "a")]


def test_a_bound_pod_is_gone_when_a_new_list_has_another_pod_of_its_name(
    recording: Recording,
) -> None:
    StillView(("Pod", pod("a", 2, on="n")), ("Pod", pod("a", 1)))

    assert recording.lines()[-1] == Line("gone", "a")
