"""What the hub sees of a pod that starts, as KubeSpawner's reflector shows it."""

from types import SimpleNamespace
from typing import cast

import pytest

from gpuspawner.cluster.pod_events import Heard
from gpuspawner.compat.kubespawner import Stock
from gpuspawner.launch.observed_pod import SeenPod
from gpuspawner.troubles.ending import Ending, utc_now
from gpuspawner.troubles.steps import Step
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.starts import event


def pod(uid="u", node="", **metadata):
    return {
        "metadata": {"name": "jupyter-ann", "namespace": "hub", "uid": uid, **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "notebook", "image": "lab:1"}]},
        "status": {"phase": "Pending"},
    }


class Window:
    """A pod, and what is to be seen of it."""

    def __init__(self, clock):
        self.clock = clock
        self.pod = None
        self.heard = Heard()
        self.is_lost = False
        self.farewell = None
        self.knows_pods = True
        fake = SimpleNamespace(known_pod=lambda: self.pod, knows_pods=lambda: self.knows_pods)
        stock = cast("Stock", fake)
        self.seen = SeenPod(stock, lambda: self.is_lost, lambda: self.farewell)

    def look(self):
        return self.seen.look(self.heard)

    def step(self):
        return self.look().stages[-1].step

    def troubles(self):
        return [it.kind for it in self.look().troubles]


@pytest.fixture
def window(clock):
    return Window(clock)


def test_a_pod_that_has_changed_is_looked_at_and_another_one_s_change_is_not(window):
    window.pod = pod()
    assert window.step() is Step.SCHEDULING
    assert window.look() is None

    window.pod = pod(node="t4-0")
    assert window.step() is Step.NODE_FOUND


def test_an_unchanged_pod_is_looked_at_every_second(window):
    window.pod = pod()
    window.look()
    window.clock.now += 0.9
    assert window.look() is None
    window.clock.now += 0.1
    assert window.look() is not None


def test_events_are_seen_once_and_what_they_showed_stays(window):
    window.pod = pod(node="t4-0")
    window.heard.put(event("Pulling", 'Pulling image "lab:1"', container="notebook", uid="u"))
    assert window.look().texts == ('Pulling image "lab:1"',)

    window.pod = pod(node="t4-0")  # all over again, as after a watch was cut
    again = window.look()
    assert again.texts == ()
    assert again.stages[-1].step is Step.PULLING


def test_an_older_pod_of_the_name_that_is_still_ending_is_not_this_start_s(window):
    window.pod = pod("older", deletionTimestamp="2026-11-23T12:00:00Z")
    assert window.look() is None

    window.pod = pod("newer")
    assert window.troubles() == []


def test_a_pod_that_kubespawner_sends_again_starts_anew(window):
    window.pod = pod("first", node="t4-0")
    assert window.step() is Step.NODE_FOUND
    window.pod = pod("second")
    assert window.step() is Step.SCHEDULING


def test_a_pod_that_is_deleted_is_told_at_once_and_a_missing_one_after_some_seconds(window):
    window.pod = pod()
    window.look()
    window.pod = None
    window.clock.now += 6  # nobody has looked meanwhile
    assert window.troubles() == []
    window.clock.now += 4
    assert window.troubles() == []
    window.clock.now += 2
    assert window.troubles() == [Kind.DELETED]

    window.pod = pod(deletionTimestamp="2026-11-23T12:00:00Z")
    assert window.troubles()[0] is Kind.DELETED


def test_a_pod_is_not_missing_while_kubespawner_reads_all_pods_anew(window):
    window.pod = pod()
    window.look()
    window.pod, window.knows_pods = None, False
    window.clock.now += 60
    assert window.troubles() == []


def test_a_pod_that_came_and_went_between_two_looks_is_told(window):
    assert window.look() is None
    window.is_lost = True
    assert window.troubles() == [Kind.DELETED]

    window.farewell = Ending(Kind.PREEMPTED, utc_now())
    assert window.troubles() == [Kind.PREEMPTED]


@pytest.mark.parametrize("raw", [{}, [], "x", {"metadata": 1}, {"spec": {"containers": "x"}}])
def test_what_cannot_be_read_changes_nothing(window, raw):
    window.pod = pod(node="t4-0")
    assert window.step() is Step.NODE_FOUND
    window.pod = raw
    window.clock.now += 1
    assert window.step() is Step.NODE_FOUND
