"""A pod is gone only if the view would show it."""

from __future__ import annotations

import pytest

from gpuspawner.cluster.health import Live, Reading
from gpuspawner.preflight.in_view import InView
from tests.unit.preflight.worlds import NAMESPACE, StillView, pod


@pytest.mark.parametrize(
    ("health", "touch", "is_lost"),
    [(Live(0.5), True, True), (Live(0.5), False, False), (Reading(60.0), True, False)],
    ids=["live", "out of touch", "still reads its first list"],
)
def test_a_pod_is_lost_once_a_live_view_lacks_it_for_a_while(clock, health, touch, is_lost) -> None:
    view = StillView()
    view.now, view.touch = health, touch
    in_view = InView(view, f"{NAMESPACE}/a")

    assert not in_view.is_lost()
    clock.now += 60
    assert in_view.is_lost() is is_lost


def test_a_pod_that_comes_back_into_view_is_not_lost(clock) -> None:
    view = StillView(("Pod", pod("a")))
    in_view = InView(view, f"{NAMESPACE}/a")
    view.remove_pod("a")
    assert not in_view.is_lost()
    view.put("Pod", pod("a"))
    clock.now += 60

    assert not in_view.is_lost()
