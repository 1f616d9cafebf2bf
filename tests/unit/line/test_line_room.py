"""What the line learns of nodes."""

from dataclasses import replace as change

import pytest
from msgspec.structs import replace

from gpuspawner.line.line_room import LineRoom
from gpuspawner.line.tickets import Ticket
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")


class Stage:
    """Two nodes: one with a free GPU of two, one whose only GPU is in use."""

    def __init__(self):
        self.view = StillView(
            ("Node", node("half", 2)),
            ("Pod", pod("x", 1, on="half")),
            ("Node", node("full", 1)),
            ("Pod", pod("y", 1, on="full")),
        )
        self.verdicts = Verdicts(self.view.state)
        self.reservations = Reservations(self.view.state, self.verdicts, self.view.wake)
        state, reservations = self.view.state, self.reservations
        self.room = LineRoom(state, self.verdicts, reservations, lambda *_: True)

    def ticket(self, name, gpus=1, pod=None):
        wanted = proposal(name, gpus)
        subject = (change(wanted, pod=pod) if pod else wanted).subject
        return Ticket(wanted.key, name, name, {GPU: gpus}, 1.0, subject=subject)

    def reserve(self, name):
        self.reservations.take((NAMESPACE, name), proposal(name).subject)


@pytest.fixture
def stage():
    return Stage()


def test_a_server_fits_where_it_could_start_now(stage):
    assert set(stage.room.fitting(stage.ticket("ann"))) == {"half"}
    assert not stage.room.fitting(stage.ticket("two", 2))


def test_a_server_that_requests_no_cpu_fits_where_more_than_all_is_in_use(stage):
    ann = stage.ticket("ann")
    none = replace(ann, requests={**ann.requests, "cpu": 0})
    requests = {"requests": {"cpu": "100"}}
    stage.view.put("Pod", pod("z", 0, on="half", containers=[{"name": "c", "resources": requests}]))

    assert stage.view.state.nodes["half"].free["cpu"] < 0
    assert set(stage.room.fitting(none)) == {"half"}


def test_it_is_possible_where_it_fits_if_others_end(stage):
    assert stage.room.possible(stage.ticket("ann")) == {"half", "full"}
    assert stage.room.possible(stage.ticket("two", 2)) == {"half"}
    assert stage.room.possible(stage.ticket("four", 4)) == frozenset()


def test_it_is_possible_where_a_driver_may_serve_what_it_asks_for(stage):
    class_ = {"metadata": {"name": "g"}, "spec": {"extendedResourceName": GPU}}
    stage.view.state.mark_known("DeviceClass")
    stage.view.put("Node", node("claims", 0))
    assert stage.room.possible(stage.ticket("four", 4)) == frozenset()
    stage.view.put("DeviceClass", class_)
    assert stage.room.possible(stage.ticket("four", 4)) == {"claims"}


def test_room_that_is_promised_to_others_fits_nobody(stage):
    ann = stage.ticket("ann")
    assert not stage.room.is_promised(ann)

    stage.reserve("bob")

    assert stage.room.is_promised(ann)
    assert not stage.room.fitting(ann)
    assert stage.room.possible(ann) == {"half", "full"}


def test_a_node_that_is_gone_has_nothing(stage):
    assert stage.room.unpromised("gone") == {}
    assert list(stage.room.ends("gone")) == []


def test_what_is_possible_is_found_once_until_more_than_a_server_changes(stage, monkeypatch):
    ann = stage.ticket("ann")
    assert stage.room.possible(ann) == {"half", "full"}
    with monkeypatch.context() as patch:
        patch.setattr("gpuspawner.line.line_room.reach", lambda *_: 1 / 0)
        stage.view.state.remove("Pod", NAMESPACE, "x")
        assert stage.room.possible(ann) == {"half", "full"}

    stage.view.state.remove("Node", "", "full")

    assert stage.room.possible(ann) == {"half"}


def test_for_servers_with_equal_needs_what_is_possible_is_found_once(stage, monkeypatch):
    def home(user):
        claim = {"persistentVolumeClaim": {"claimName": user}}
        return pod(user, 1, volumes=[{"name": "home", **claim}])

    claims = {"metadata": {"namespace": NAMESPACE}, "spec": {"storageClassName": "disks"}}
    for user in ("ann", "bob"):
        named = {**claims, "metadata": {"name": user, "namespace": NAMESPACE}}
        stage.view.put("PersistentVolumeClaim", named)
    found = stage.room.possible(stage.ticket("ann", pod=home("ann")))
    monkeypatch.setattr("gpuspawner.line.line_room.reach", lambda *_: 1 / 0)

    assert stage.room.possible(stage.ticket("bob", pod=home("bob"))) is found


def test_what_is_promised_is_judged_once_for_all_nodes_until_something_changes(stage, monkeypatch):
    for name in ("ann", "bob", "cid"):
        stage.reserve(name)
    asked, demand = [], stage.verdicts.demand

    def judge(subject):
        asked.append(subject)
        return demand(subject)

    monkeypatch.setattr(stage.verdicts, "demand", judge)

    left = [stage.room.unpromised(node)[GPU] for node in ("half", "full") * 10]

    assert left == [-2, 0] * 10
    assert len(asked) == 3
    stage.reserve("dan")
    assert stage.room.unpromised("half")[GPU] == -3
    assert len(asked) == 4
    stage.view.put("Pod", pod("z", 1, on="half"))
    stage.reservations.release((NAMESPACE, "dan"))
    stage.view.remove_pod("z")
    stage.view.remove_pod("x")
    assert stage.room.unpromised("half")[GPU] == -1


def test_a_promise_counts_on_each_node_to_which_it_may_lead(stage):
    assert stage.room.unpromised("half")[GPU] == 1

    stage.reserve("bob")

    assert stage.room.unpromised("half")[GPU] == 0
    assert stage.room.unpromised("full") == stage.view.state.nodes["full"].free


def test_what_is_possible_is_asked_anew_for_another_pod_of_the_same_server(stage):
    assert stage.room.possible(stage.ticket("ann")) == {"half", "full"}
    assert stage.room.possible(stage.ticket("ann", 2)) == {"half"}
