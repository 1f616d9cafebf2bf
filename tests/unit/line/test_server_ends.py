"""When servers end and which are idle, from their pods."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.line import line_room
from gpuspawner.line.line_room import LineRoom
from gpuspawner.line.tickets import Ticket
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.policy_pods import container, read
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")

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
    monkeypatch.setattr(line_room, "datetime", Calendar)


def room(pods=dict, unused=frozenset, objects=()):
    view = StillView(*objects)
    verdicts = Verdicts(view.state)
    reservations = Reservations(view.state, verdicts, view.wake)
    return LineRoom(view.state, verdicts, reservations, lambda *_: True, pods, unused)


def ends(pods, *on_node):
    """Return the known ends of pods on a node."""
    objects = ("Node", node("n", 8)), *(("Pod", it) for it in on_node)
    return room(lambda: pods, objects=objects).ends("n")


def test_known_ends_come_in_order_and_count_the_time_that_a_pod_may_take_to_end():
    pods = known(a=server("a", -10, 3600), b=server("b", -50, 3600), c=server("c", -10))
    grace = {"terminationGracePeriodSeconds": 60}

    found = ends(pods, *(pod(it, 1, on="n", **grace) for it in ("a", "b", "c")))

    assert [round(it.seconds / 60) for it in found] == [11, 51]
    assert found[0].amounts[GPU] == 1


def test_an_end_that_is_overdue_is_now():
    overdue = pod("a", 1, on="n", terminationGracePeriodSeconds=0)
    assert [it.seconds for it in ends(known(a=server("a", -90, 3600)), overdue)] == [0]


@pytest.mark.parametrize("moment", ["yesterday", "", "9999-99-99T00:00:00Z"])
def test_a_beginning_that_nobody_can_read_gives_no_end(moment):
    assert ends(known(a=server("a", moment, 3600)), pod("a", 1, on="n")) == []


NODES = [
    *(("Node", node(name, 2)) for name in ("n", "m")),
    *(("Pod", pod(name, on="n")) for name in ("a", "b")),
    ("Pod", pod("cpu", 0, on="n")),
    ("Pod", pod("c", on="m")),
]
IDLE = {(NAMESPACE, it) for it in ("a", "c", "cpu", "elsewhere")}


def ticket(gpus=1, **spec):
    wanted = proposal("t", gpus, **spec)
    return Ticket(wanted.key, "ann", "any", {GPU: gpus}, 0.0, subject=wanted.subject)


@pytest.mark.parametrize(
    ("unused", "wanted", "count"),
    [
        (IDLE, ticket(), 2),
        (IDLE, ticket(nodeName="n"), 1),
        (IDLE, ticket(0), 0),
        (frozenset(), ticket(), 0),
    ],
    ids=["everywhere", "on-one-node", "without-a-gpu", "nobody-is-idle"],
)
def test_idle_servers_count_if_they_have_what_is_waited_for_where_it_is(unused, wanted, count):
    assert room(unused=lambda: unused, objects=NODES).idle(wanted) == count


def test_idle_servers_are_counted_once_in_a_while_for_all_who_wait_for_the_same(clock):
    asked = []

    def unused():
        asked.append(1)
        return frozenset()

    found = room(unused=unused, objects=NODES)
    for _ in range(5):
        found.idle(ticket())
    assert len(asked) == 1

    clock.now += 31
    found.idle(ticket())
    assert len(asked) == 2
