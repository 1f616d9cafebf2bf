"""How long servers last, when they end and which are idle, from their pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import exp
from typing import Any

import pytest

from gpuspawner.kube.servers import ServerPod
from gpuspawner.line import durations as measured
from gpuspawner.line.durations import Durations
from gpuspawner.line.estimate import Occupant
from gpuspawner.scheduling.node_info import NodeInfo
from tests.unit.makers.policy_pods import container, read
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, node, pod

pytestmark = pytest.mark.usefixtures("clock")

Pods = dict[tuple[str, str], ServerPod]


START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def server(name: str, began: float | None, deadline: int | None = None) -> ServerPod:
    """A server with a GPU that began at a minute since the start of the hub; None: it hasn't."""
    spec: dict[str, Any] = {"containers": [container(gpu=1)]}
    if deadline is not None:
        spec["activeDeadlineSeconds"] = deadline
    status = {}
    if began is not None:
        status["startTime"] = (START + timedelta(minutes=began)).isoformat()
    metadata = {"name": name, "namespace": NAMESPACE}
    return read({"metadata": metadata, "spec": spec, "status": status})


def known(**pods: ServerPod) -> Pods:
    return {(NAMESPACE, name): it for name, it in pods.items()}


class Calendar(datetime):
    """A calendar that a test sets: the minute it is, from the start of the hub on."""

    minute = 0.0

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return START.astimezone(tz) + timedelta(minutes=cls.minute)


@pytest.fixture(autouse=True)
def calendar(monkeypatch: pytest.MonkeyPatch) -> type[Calendar]:
    monkeypatch.setattr(measured, "datetime", Calendar)
    monkeypatch.setattr(Calendar, "minute", 0.0)
    return Calendar


def node_with(*pods: dict[str, object]) -> NodeInfo:
    view = StillView(("Node", node("n", 8)), *(("Pod", it) for it in pods))
    return view.state.nodes["n"]


def about(occupant: Occupant) -> tuple[int, int, int | None]:
    left = None if occupant.left is None else round(occupant.left / 60)
    return occupant.amount, round(occupant.age / 60), left


def test_only_servers_of_the_hub_that_have_begun_are_occupants() -> None:
    pods = known(a=server("a", -10), b=server("b", -20, 1800), new=server("new", None))
    names = ("a", "b", "new", "other")
    place = node_with(*(pod(it, 2, on="n", terminationGracePeriodSeconds=0) for it in names))

    found = Durations(lambda: pods).occupants([place], GPU)

    assert sorted(map(about, found)) == [(2, 10, None), (2, 20, 10)]


def test_a_resource_that_a_server_hasnt_isnt_occupied() -> None:
    pods = known(a=server("a", -10))
    assert Durations(lambda: pods).occupants([node_with(pod("a", 1, on="n"))], "x/y") == []


def test_known_ends_come_in_order_and_count_the_time_that_a_pod_may_take_to_end() -> None:
    pods = known(a=server("a", -10, 3600), b=server("b", -50, 3600), c=server("c", -10))
    place = node_with(
        *(pod(it, 1, on="n", terminationGracePeriodSeconds=60) for it in ("a", "b", "c"))
    )

    ends = Durations(lambda: pods).ends(place)

    assert [round(it.seconds / 60) for it in ends] == [11, 51]
    assert ends[0].amounts[GPU] == 1


def test_an_end_that_is_overdue_is_now() -> None:
    pods = known(a=server("a", -90, 3600))
    place = node_with(pod("a", 1, on="n", terminationGracePeriodSeconds=0))
    assert [it.seconds for it in Durations(lambda: pods).ends(place)] == [0]


def test_servers_that_end_are_counted_by_device_and_those_that_never_began_arent(calendar) -> None:
    durations = Durations(dict)
    calendar.minute = 30
    for began in (10, 20, None):
        durations.note_end(server("a", began))

    assert durations.survival(GPU).ends == 2
    assert durations.survival("amd.com/gpu").ends == 0
    assert durations.survival("cpu").ends == 0


@pytest.mark.parametrize("moment", ["yesterday", "", "9999-99-99T00:00:00Z"])
def test_a_moment_that_nobody_can_read_counts_nothing(moment) -> None:
    spec = {"containers": [container(gpu=1)]}
    odd = read({"metadata": {"name": "a"}, "spec": spec, "status": {"startTime": moment}})
    durations = Durations(lambda: known(a=odd))
    durations.note_end(odd)

    assert durations.survival(GPU).ends == 0
    assert durations.occupants([node_with(pod("a", 1, on="n"))], GPU) == []


def test_a_clock_that_is_ahead_makes_no_negative_age() -> None:
    durations = Durations(dict)
    durations.note_end(server("a", 10))
    assert durations.survival(GPU).times == (0.0,)


def test_the_oldest_ends_are_forgotten(calendar) -> None:
    durations = Durations(dict)
    for minute in range(measured._KEPT + 7):
        calendar.minute = minute
        durations.note_end(server("a", -1))
    assert durations.survival(GPU).ends == measured._KEPT


def test_idle_servers_count_where_they_have_the_device() -> None:
    place = node_with(*(pod(it, gpus, on="n") for it, gpus in (("a", 1), ("b", 1), ("cpu", 0))))
    unused = {(NAMESPACE, "a"), (NAMESPACE, "cpu"), (NAMESPACE, "gone")}

    assert Durations(dict, lambda: unused).idle([place], GPU) == 1
    assert Durations(dict).idle([place], GPU) == 0


def test_servers_that_still_run_count_wherever_they_are(calendar) -> None:
    pods = known(a=server("a", 0), b=server("b", 0), new=server("new", None))
    durations = Durations(lambda: pods)
    calendar.minute = 10
    durations.note_end(server("gone", 0))
    calendar.minute = 60

    assert durations.survival(GPU).beyond(10 * 60) == pytest.approx(2 / 3)


def test_servers_that_are_older_than_the_hub_count_from_its_start_on(calendar) -> None:
    """At 10 minutes, only one more was at risk; at 130, those that were 120 when the hub began."""
    pods = known(a=server("a", -120), b=server("b", -120), c=server("c", 0))
    durations = Durations(lambda: pods)
    calendar.minute = 10
    durations.note_end(server("gone", 0))
    durations.note_end(server("old", -120))
    calendar.minute = 60

    survival = durations.survival(GPU)

    assert survival.times == (10 * 60, 130 * 60)
    assert survival.shares == pytest.approx((1 / 2, 1 / 2 * 2 / 3))


def test_servers_count_from_the_last_end_on_that_is_forgotten(calendar, monkeypatch) -> None:
    """Of three ends at 10, 20 and 30 minutes, two are kept; all others have run since the start."""
    monkeypatch.setattr(measured, "_KEPT", 2)
    pods = known(a=server("a", 0), b=server("b", 0))
    durations = Durations(lambda: pods)
    for minute, began in ((10, 0), (20, 15), (30, 0)):
        calendar.minute = minute
        durations.note_end(server("gone", began))
    calendar.minute = 60

    survival = durations.survival(GPU)

    assert survival.ends == 2
    assert survival.times == (5 * 60, 30 * 60)
    assert survival.shares == pytest.approx((exp(-1), exp(-1) * 2 / 3))


def test_a_clock_that_is_set_back_leaves_out_what_it_makes_unseen(calendar) -> None:
    pods = known(a=server("a", -120), new=server("new", 0))
    durations = Durations(lambda: pods)
    calendar.minute = -60
    durations.note_end(server("old", -120))

    assert durations.survival(GPU).ends == 0
