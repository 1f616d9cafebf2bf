"""What people in line can expect."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import strict_convert
from gpuspawner.kube.servers import ServerPod
from gpuspawner.line import prospects
from gpuspawner.line.durations import Durations
from gpuspawner.line.estimate import Range
from gpuspawner.line.line import Ticket
from gpuspawner.line.prospects import Prospects
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod

pytestmark = pytest.mark.usefixtures("clock")

NODES = frozenset({"n", "m"})
MINUTE = 60.0


def ticket(gpus: int = 1, **requests: int) -> Ticket:
    return Ticket((NAMESPACE, "t"), "ann", "any", {GPU: gpus, **requests}, 0.0)


def servers(**lifetimes: float) -> Mapping[Key, ServerPod]:
    """Servers that have just begun, by name, and the minutes for which they live."""

    def server(minutes: float) -> ServerPod:
        began = datetime.now(UTC) + timedelta(seconds=5)
        spec = {"containers": [], "activeDeadlineSeconds": int(minutes * 60)}
        return strict_convert({"spec": spec, "status": {"startTime": began.isoformat()}}, ServerPod)

    return {(NAMESPACE, name): server(minutes) for name, minutes in lifetimes.items()}


@pytest.fixture
def view() -> StillView:
    """Two nodes of two GPUs; one GPU of the second is free."""
    return StillView(
        *(("Node", node(name, 2)) for name in ("n", "m")),
        *(("Pod", pod(name, on="n")) for name in ("a", "b")),
        ("Pod", pod("c", on="m")),
    )


def lives() -> Mapping[Key, ServerPod]:
    """Servers that have just begun; each also has its grace period of 30 s."""
    return servers(a=9, b=29, c=55)


def of(view: StillView, unused: frozenset[Key] = frozenset()) -> Prospects:
    return Prospects(view.state, Durations(lives, lambda: unused))


WAITS = {
    "for the server that ends first": (1, {"n"}, [], (9, 10)),
    "with others ahead: for later ends": (1, NODES, [(1, 2)], (55, 60)),
    "with others who have left: as if alone": (1, NODES, [(2, 0)], (9, 10)),
    "for several GPUs: for the node that has them first": (2, NODES, [], (25, 30)),
    "for several GPUs on one node": (2, {"m"}, [], (55, 60)),
    "for several GPUs with others ahead: nobody can tell": (2, NODES, [(1, 1)], None),
    "for several GPUs on a node that is gone: nobody can tell": (2, {"gone"}, [], None),
    "behind a server of several GPUs: nobody can tell": (1, NODES, [(2, 1)], None),
}


@pytest.mark.parametrize(("gpus", "nodes", "ahead", "minutes"), WAITS.values(), ids=WAITS)
def test_how_long_somebody_waits(view, gpus, nodes, ahead, minutes) -> None:
    others = [(ticket(gpus), count) for gpus, count in ahead]

    found = of(view).usual(ticket(gpus), frozenset(nodes), others)

    assert found == (minutes and Range(*(it * MINUTE for it in minutes)))


def test_of_many_nodes_those_with_most_free_are_asked(view, monkeypatch) -> None:
    monkeypatch.setattr(prospects, "_ASKED", 1)

    assert of(view).usual(ticket(2), NODES, []) == Range(55 * MINUTE, 60 * MINUTE)


def test_of_a_server_without_a_gpu_nothing_is_known(view) -> None:
    without = Ticket((NAMESPACE, "t"), "ann", "any", {"memory": 1}, 0.0)

    for it in (without, ticket(0)):
        assert of(view).usual(it, NODES, []) is None
        assert of(view).idle(it, NODES) == 0


def test_idle_servers_count_if_they_have_what_is_waited_for_where_it_is(view) -> None:
    view.put("Pod", pod("cpu", 0, on="n"))
    unused = frozenset((NAMESPACE, it) for it in ("a", "c", "cpu", "elsewhere"))

    assert of(view, unused).idle(ticket(), NODES) == 2
    assert of(view, unused).idle(ticket(), frozenset({"n"})) == 1
    assert of(view).idle(ticket(), NODES) == 0


def test_a_forecast_is_made_once_for_all_who_wait_for_the_same(view, clock) -> None:
    asked = []

    def unused():
        asked.append(1)
        return frozenset()

    expected = Prospects(view.state, Durations(lives, unused))
    for place in range(5):
        expected.usual(ticket(), NODES, [(ticket(), place)])
        expected.idle(ticket(), NODES)
    assert len(asked) == 1

    clock.now += 31
    expected.idle(ticket(), NODES)
    assert len(asked) == 2


def test_the_first_node_for_several_gpus_is_looked_for_once_in_a_while(view, clock) -> None:
    expected = of(view)
    assert expected.usual(ticket(2), NODES, []) == Range(25 * MINUTE, 30 * MINUTE)
    view.put("Pod", pod("a", 2, on="n"))
    view.state.remove("Pod", NAMESPACE, "b")
    assert expected.usual(ticket(2), NODES, []) == Range(25 * MINUTE, 30 * MINUTE)

    clock.now += 31

    assert expected.usual(ticket(2), NODES, []) == Range(9 * MINUTE, 10 * MINUTE)
