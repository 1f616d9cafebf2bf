"""A pod is gone only if the view would show it."""

import pytest

from gpuspawner.cluster.health import Live, Reading
from gpuspawner.kube.objects import Undecodable, convert
from gpuspawner.launch.observed_pod import NEVER_SEEN_SECONDS, UNSEEN_SECONDS, InView
from tests.unit.makers.worlds import NAMESPACE, StillView, pod

pytestmark = pytest.mark.usefixtures("clock")

KEY = f"{NAMESPACE}/a"


@pytest.mark.parametrize(
    ("objects", "seconds"),
    [([], NEVER_SEEN_SECONDS), ([("Pod", pod("a"))], UNSEEN_SECONDS)],
    ids=["never seen", "seen before"],
)
@pytest.mark.parametrize(
    ("health", "touch", "is_lost"),
    [(Live(0.5), True, True), (Live(0.5), False, False), (Reading(60.0), True, False)],
    ids=["live", "out of touch", "still reads its first list"],
)
def test_a_pod_is_lost_once_a_live_view_lacks_it_for_a_while(
    clock, objects, seconds, health, touch, is_lost
):
    view = StillView(*objects)
    view.now, view.touch = health, touch
    in_view = InView(view, KEY)
    view.remove_pod("a")

    assert not in_view.is_lost()
    clock.now += seconds - 1
    assert not in_view.is_lost()
    clock.now += 1
    assert in_view.is_lost() is is_lost


UNREADABLE = Undecodable("Pod", NAMESPACE, "a", "", "an odd field")


@pytest.mark.parametrize(
    "again",
    [convert("Pod", pod("a")), convert("Pod", pod("a", on="n")), UNREADABLE],
    ids=["without a node", "on a node", "unreadable"],
)
def test_a_pod_that_comes_back_into_view_is_not_lost(clock, again):
    """An older pod of its name, which the view still showed, may have gone."""
    view = StillView(("Pod", pod("a")))
    in_view = InView(view, KEY)
    view.remove_pod("a")
    assert not in_view.is_lost()
    view.state.put(again)
    clock.now += 60

    assert not in_view.is_lost()


def test_after_a_long_rest_the_first_look_finds_no_pod_lost(clock):
    view = StillView(("Pod", pod("a")))
    in_view = InView(view, KEY)
    clock.now += 2 * UNSEEN_SECONDS
    view.remove_pod("a")

    assert not in_view.is_lost()


def test_a_pod_that_was_never_in_view_is_not_lost_while_the_watch_of_pods_is_silent(clock):
    """If its connection breaks silently, the view is live and in touch for more than a minute."""
    view = StillView()
    in_view = InView(view, KEY)
    view.silent = 5.0
    for _ in range(80):
        assert not in_view.is_lost()
        clock.now += 1
        view.silent += 1

    view.silent = 1.0
    assert in_view.is_lost()
