"""When servers end and which are idle, from their pods."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.kube.servers import ServerPod
from gpuspawner.line import server_ends as measured
from gpuspawner.line.server_ends import KnownEnds
from gpuspawner.line.tickets import Ticket
from tests.unit.makers.policy_pods import container, read
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod

pytestmark = pytest.mark.usefixtures("clock")

Pods = dict[tuple[str, str], ServerPod]
NODES = frozenset({"n", "m"})

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def server(name, began, deadline=None):
    """A server with a GPU that began at a minute since the start of the hub."""
    spec = {"containers": [container(gpu=1)]}
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    if not isinstance(began, str):
        began = (START + timedelta(minutes=began)).isoformat()
    metadata = {"name": name, "namespace": NAMESPACE}
    return read({"metadata": metadata, "spec": spec, "status": {"startTime": began}})


def known(**pods):
    return {(NAMESPACE, name): it for name, it in pods.items()}


class Calendar(datetime):
    """A calendar that shows the start of the hub."""

    @classmethod
    def now(cls, tz=None):
        return START.astimezone(tz)


@pytest.fixture(autouse=True)
def calendar(monkeypatch):
    monkeypatch.setattr(measured, "datetime", Calendar)


def node_with(*pods):
    view = StillView(("Node", node("n", 8)), *(("Pod", it) for it in pods))
    return view.state.nodes["n"]


def test_known_ends_come_in_order_and_count_the_time_that_a_pod_may_take_to_end():
    pods = known(a=server("a", -10, 3600), b=server("b", -50, 3600), c=server("c", -10))
    place = node_with(
        *(pod(it, 1, on="n", terminationGracePeriodSeconds=60) for it in ("a", "b", "c"))
    )

    ends = KnownEnds(lambda: pods).ends(place)

    assert [round(it.seconds / 60) for it in ends] == [11, 51]
    assert ends[0].amounts[GPU] == 1


def test_an_end_that_is_overdue_is_now():
    pods = known(a=server("a", -90, 3600))
    place = node_with(pod("a", 1, on="n", terminationGracePeriodSeconds=0))
    assert [it.seconds for it in KnownEnds(lambda: pods).ends(place)] == [0]


@pytest.mark.parametrize("moment", ["yesterday", "", "9999-99-99T00:00:00Z"])
def test_a_beginning_that_nobody_can_read_gives_no_end(moment):
    pods = known(a=server("a", moment, 3600))
    assert KnownEnds(lambda: pods).ends(node_with(pod("a", 1, on="n"))) == []


def ticket(gpus=1):
    return Ticket((NAMESPACE, "t"), "ann", "any", {"memory": 1, GPU: gpus}, 0.0)


@pytest.fixture
def view():
    return StillView(
        *(("Node", node(name, 2)) for name in ("n", "m")),
        *(("Pod", pod(name, on="n")) for name in ("a", "b")),
        ("Pod", pod("cpu", 0, on="n")),
        ("Pod", pod("c", on="m")),
    )


def test_idle_servers_count_if_they_have_what_is_waited_for_where_it_is(view):
    unused = {(NAMESPACE, it) for it in ("a", "c", "cpu", "elsewhere")}
    known_ends, nodes = KnownEnds(dict, lambda: unused), view.state.nodes

    assert known_ends.idle(ticket(), NODES, nodes) == 2
    assert known_ends.idle(ticket(), frozenset({"n", "gone"}), nodes) == 1
    assert known_ends.idle(ticket(0), NODES, nodes) == 0
    assert KnownEnds(dict).idle(ticket(), NODES, nodes) == 0


def test_idle_servers_are_counted_once_in_a_while_for_all_who_wait_for_the_same(view, clock):
    asked = []

    def unused():
        asked.append(1)
        return frozenset()

    known_ends = KnownEnds(dict, unused)
    for _ in range(5):
        known_ends.idle(ticket(), NODES, view.state.nodes)
    assert len(asked) == 1

    clock.now += 31
    known_ends.idle(ticket(), NODES, view.state.nodes)
    assert len(asked) == 2
