"""A spawner knows how its last server ended, and so does the hub's database."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import pytest
from kubespawner import KubeSpawner
from msgspec.structs import replace
from sqlalchemy import event
from sqlalchemy.orm import object_session

from gpuspawner import GPUSpawner
from gpuspawner.cluster.health import Forbidden, Reading
from gpuspawner.launch.server_state import last_of, place_of, without_place
from gpuspawner.reservations import granted
from gpuspawner.reservations.granted import Granted
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from gpuspawner.spawner import in_front_of
from gpuspawner.troubles.ending import Ending, written
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.file_database import FileDatabase, until
from tests.unit.makers.policy_pods import server_pod
from tests.unit.makers.restarts import NODE, begin, kind, pod, restarting, set_pod, stop, stopped

EVICTED = Ending(Kind.EVICTED, datetime(2026, 11, 21, 20, 30, tzinfo=UTC))


@pytest.fixture
def up(after_restart) -> GPUSpawner:
    """A spawner whose server is up."""
    spawner = after_restart(runs=True)
    spawner.gpuspawner_gates.server_state.answers()
    return spawner


@pytest.mark.parametrize(
    ("farewell", "polled", "expected"),
    [
        pytest.param("", [pod("EvictionByEvictionAPI")], Kind.EVICTED, id="as KubeSpawner sees it"),
        pytest.param("PreemptionByScheduler", [None], Kind.PREEMPTED, id="gone before a look"),
        # It still ran before KubeSpawner looked, and stopped it.
        pytest.param("EvictionByEvictionAPI", [pod()], Kind.EVICTED, id="ends during a look"),
        pytest.param("", [None], Kind.DELETED, id="gone without a word"),
        pytest.param(
            "", [pod("PreemptionByScheduler"), None], Kind.PREEMPTED, id="the first cause stays"
        ),
    ],
)
def test_the_hub_stores_how_a_server_ended_that_was_up(up, farewell, polled, expected) -> None:
    if farewell:
        up.gpuspawner_gates.server_state.farewell(pod(farewell))

    assert [up.gpuspawner_gates.server_state.polled(1, it) for it in polled] == [1] * len(polled)
    assert stopped(up) is expected


def test_an_ending_is_stored_before_the_hub_stores_that_the_server_has_stopped(
    after_restart, up
) -> None:
    """The hub may end in between, and the pod is gone then."""
    up.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI"))
    assert kind(up) is Kind.EVICTED

    again = after_restart(runs=True)
    again.gpuspawner_gates.server_state.polled(1, None)
    assert stopped(again) is Kind.EVICTED


async def test_a_stop_by_somebody_else_is_stored_unless_the_server_has_ended_already(
    after_restart, up, monkeypatch
) -> None:
    async def gone(*_: object) -> None: ...

    monkeypatch.setattr(KubeSpawner, "stop", gone)
    up.gpuspawner_gates.server_state.stopped_by_another()
    assert up.gpuspawner_gates.server_state.why == "stopped"
    await up.stop()
    assert kind(up) is stopped(up) is Kind.STOPPED

    again = after_restart(runs=True)
    again.gpuspawner_gates.server_state.answers()
    again.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI"))
    again.gpuspawner_gates.server_state.stopped_by_another()
    assert stopped(again) is Kind.EVICTED


async def test_a_cut_start_that_never_comes_up_is_stored_so_before_the_hub_has_stopped_it(
    after_restart, monkeypatch
) -> None:
    async def gone(*_: object) -> None: ...

    monkeypatch.setattr(KubeSpawner, "stop", gone)
    await after_restart(runs=True).gpuspawner_gates.server_state.send(Granted())
    restarted = after_restart(runs=True)
    assert restarted.gpuspawner_gates.server_state.polled(None, pod()) is None

    await restarted.stop()

    assert kind(restarted) is Kind.HUB_RESTARTED


def test_a_pod_that_has_ended_meanwhile_and_stays_tells_why(up) -> None:
    set_pod(up, pod("EvictionByEvictionAPI"))

    up.gpuspawner_gates.server_state.polled(1, pod())

    assert stopped(up) is Kind.EVICTED


async def test_a_locked_database_keeps_no_server_from_stopping_and_has_its_ending_afterwards(
    hub_with, tmp_path, caplog
) -> None:
    database = FileDatabase(tmp_path)
    up = restarting(hub_with(NODE), database)(runs=True)
    up.gpuspawner_gates.server_state.answers()

    with database.locked():
        assert up.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI")) == 1
        up.gpuspawner_gates.server_state.store()

    await until(lambda: kind(up) is Kind.EVICTED)
    assert caplog.text.count("database is locked") == 1


def test_a_bug_of_ours_leaves_the_hub_with_kubespawner_s_own_status(
    up, monkeypatch, caplog
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("gpuspawner.launch.server_state.read_pod", fails)
    monkeypatch.setattr("gpuspawner.troubles.ending.ending_of", fails)

    assert up.gpuspawner_gates.server_state.polled(None, pod()) is None
    assert up.gpuspawner_gates.server_state.polled(1, pod()) == 1
    up.gpuspawner_gates.server_state.farewell(pod("EvictionByEvictionAPI"))
    assert "Can't note how a pod ended" in caplog.text


def test_the_farewell_of_an_older_pod_is_not_that_of_the_server(up) -> None:
    up.gpuspawner_gates.server_state.farewell(pod("PreemptionByScheduler"))
    up.gpuspawner_gates.server_state.answers()

    up.gpuspawner_gates.server_state.polled(1, None)

    assert stopped(up) is Kind.DELETED


def test_a_server_that_the_hub_stops_has_no_ending(up) -> None:
    assert up.gpuspawner_gates.server_state.polled(None, pod()) is None
    stop(up)
    assert up.gpuspawner_gates.server_state.polled(1, None) == 1

    assert kind(up) is None
    assert "gpuspawner" not in up.get_state()


async def test_a_start_that_fails_is_no_ending(after_restart) -> None:
    spawner = after_restart()
    await spawner.gpuspawner_gates.server_state.send(Granted())

    assert spawner.gpuspawner_gates.server_state.polled(1, None) == 1

    assert stopped(spawner) is None
    assert "gpuspawner" not in spawner.get_state()


def test_without_a_connection_nobody_knows_that_a_server_has_ended(up) -> None:
    up.api = None

    assert up.gpuspawner_gates.server_state.polled(1, None) == 1

    assert stopped(up) is None


@pytest.mark.parametrize(("seconds", "status"), [(5, None), (60, 1)])
def test_a_pod_that_should_be_gone_is_no_server(up, seconds, status) -> None:
    ended = datetime.now(UTC) - timedelta(seconds=seconds)
    deleted = pod("EvictionByEvictionAPI", deletionTimestamp=ended.isoformat())

    assert up.gpuspawner_gates.server_state.polled(None, deleted) == status

    assert stopped(up) is (Kind.EVICTED if status else None)


@pytest.mark.parametrize(("node", "expected"), [("gpu-0", Kind.TAINTED), ("gone", Kind.NODE_LOST)])
def test_a_node_that_is_lost_is_told_from_one_that_is_drained(up, node, expected) -> None:
    drained = pod("DeletionByTaintManager")
    drained["spec"]["nodeName"] = node

    up.gpuspawner_gates.server_state.polled(1, drained)

    assert stopped(up) is expected


@pytest.mark.parametrize("seen", [Reading(1.0), Forbidden(("nodes",), "no")])
def test_a_hub_that_sees_no_nodes_says_of_none_that_it_is_lost(up, seen) -> None:
    drained = pod("DeletionByTaintManager")
    drained["spec"]["nodeName"] = "gone"
    up.hub.view.now = seen

    up.gpuspawner_gates.server_state.polled(1, drained)

    assert stopped(up) is Kind.TAINTED


def test_an_ending_is_kept_over_a_restart_and_until_a_start_is_allowed(after_restart, up) -> None:
    up.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI"))
    stop(up)
    spawner = after_restart()

    stop(spawner)  # a start that the hub has refused
    assert kind(spawner) is Kind.EVICTED
    spawner.gpuspawner_gates.server_state.forget()

    assert stopped(spawner) is None


@pytest.mark.parametrize(
    "ours", [None, 3, [], {"ending": 3}, {"ending": {"kind": "?"}, "began": 3}, {"began": None}]
)
def test_a_state_that_nobody_can_read_tells_nothing(after_restart, ours) -> None:
    spawner = after_restart(runs=True)
    spawner.load_state({"pod_name": "jupyter-alice", "gpuspawner": ours})

    assert stopped(spawner) is None
    assert last_of(ours) is None


def test_an_ending_is_stored_beside_what_kubespawner_stores(after_restart) -> None:
    spawner = after_restart()
    spawner.load_state({"gpuspawner": {"ending": written(EVICTED)}, "pod_name": "other"})

    state = spawner.get_state()

    assert last_of(state) == EVICTED
    assert state["pod_name"] == "other"


@pytest.mark.parametrize(
    "row", [None, MagicMock(server=None, state={})], ids=["none", "a stand-in, as in tests"]
)
async def test_a_spawner_without_a_row_loads_and_sends_all_the_same(hub_with, row) -> None:
    spawner = hub_with(NODE).spawner()
    spawner.orm_spawner = row

    spawner.load_state({"gpuspawner": {"ending": written(EVICTED)}})
    await spawner.gpuspawner_gates.server_state.send(Granted())

    assert last_of(spawner.get_state()) == EVICTED


@pytest.mark.parametrize("queue", [False, True])
def test_a_stored_place_is_awaited_only_if_there_is_a_line(after_restart, queue) -> None:
    spawner = after_restart(runs=True, queue=queue)
    line = spawner.hub.runtime(spawner).line

    spawner.load_state({"gpuspawner": {"place": KeptPlace(1.0, Wish.ANYWAY).written()}})

    assert (line is not None and line.kept.are_awaited) is queue


POLICIES = {"p": {"gpus_per_user": 1}}


def noted(spawner: GPUSpawner) -> Granted:
    """What the hub has stored by which the server's pod is known."""
    row: Any = spawner.orm_spawner
    return granted.stored(row.state.get("gpuspawner"))


async def test_what_a_server_was_granted_and_its_pod_s_uid_are_stored_until_its_next_start(
    after_restart,
) -> None:
    first = after_restart(runs=True, policies=POLICIES)
    given = Granted("t4", ("p",), ("course",))
    await first.gpuspawner_gates.server_state.send(given)
    assert noted(first) == given

    set_pod(first, pod())
    first.gpuspawner_gates.server_state.answers()
    stop(first)
    stopped_again = after_restart()
    stop(stopped_again)
    assert noted(stopped_again) == replace(given, pod="1")

    await begin(stopped_again)
    assert noted(stopped_again) == replace(given, pod="1")  # it may still be there
    await stopped_again.gpuspawner_gates.server_state.send(given)
    assert noted(stopped_again) == given


@pytest.mark.parametrize("is_up", [True, False])
async def test_a_server_that_is_up_counts_whatever_is_stored_of_it(after_restart, is_up) -> None:
    """KubeSpawner without gpuspawner stores a state only once the server is up."""
    spawner = after_restart(runs=True, begun=False, policies=POLICIES)
    running = spawner.hub.runtime(spawner)
    where = {"name": spawner.pod_name, "namespace": spawner.namespace, "uid": "1"}
    running.accounts.ledger.put(server_pod(metadata=where))
    if is_up:
        spawner.gpuspawner_gates.server_state.answers()

    spawner.gpuspawner_gates.server_state.polled(None, pod())

    assert bool(running.accounts.usage.of_owner({spawner.user.id})) == is_up


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_no_pod_that_has_ended_is_kept_to_count_for_its_owner(after_restart, phase) -> None:
    """KubeSpawner shows it until the hub has deleted it; the watch that counts doesn't."""
    spawner = after_restart(runs=True, policies=POLICIES)
    spawner.gpuspawner_gates.server_state.answers()

    ended = {**pod(), "status": {"phase": phase}}
    spawner.gpuspawner_gates.server_state.polled(1, ended)

    assert not spawner.hub.runtime(spawner).accounts.ledger.claims.pods


def test_a_server_whose_state_an_administrator_s_class_cannot_tell_is_polled(
    up, monkeypatch, caplog
) -> None:
    def fails() -> None:
        raise ValueError("no state")

    monkeypatch.setattr(up, "get_state", fails)

    assert up.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI")) == 1
    assert "no state" in caplog.text


async def test_a_pod_is_known_that_is_left_when_the_stop_of_a_failed_start_fails_too(
    after_restart,
) -> None:
    spawner = after_restart(runs=True, policies=POLICIES)
    await spawner.gpuspawner_gates.server_state.send(Granted())
    spawner.gpuspawner_gates.server_state.polled(None, pod())  # the hub looks before it stops it
    stop(spawner)

    assert noted(spawner) == Granted(pod="1")


@pytest.mark.parametrize("state", [None, {"pod_name": "p"}, {"gpuspawner": 3}])
def test_a_state_without_a_place_stays_without_one(state) -> None:
    assert place_of(without_place(state)) is None


def test_who_has_no_place_any_more_keeps_the_rest_of_the_state() -> None:
    ours = {"place": KeptPlace(1.0, Wish.HERE).written(), "ending": written(EVICTED)}

    left = without_place({"pod_name": "p", "gpuspawner": ours})

    assert left == {"pod_name": "p", "gpuspawner": {"ending": written(EVICTED)}}


async def test_a_start_whose_pod_was_sent_is_cut_by_a_restart_of_the_hub(after_restart) -> None:
    await after_restart(runs=True).gpuspawner_gates.server_state.send(Granted())
    restarted = after_restart(runs=True)

    assert restarted.gpuspawner_gates.server_state.polled(1, None) == 1

    assert stopped(restarted) is Kind.HUB_RESTARTED


async def test_a_start_that_has_begun_is_cut_by_a_restart_of_the_hub(after_restart) -> None:
    spawner = after_restart(runs=True)
    await begin(spawner)

    assert stopped(after_restart(runs=True)) is Kind.HUB_RESTARTED


@pytest.mark.parametrize("before", [{}, {"began": "2026-11-21T20:30:00+00:00"}])
def test_a_start_that_has_not_begun_is_cut_too_and_nobody_has_deleted_its_pod(
    after_restart, before
) -> None:
    """The hub has stored that there is a server; what else it has stored is of an earlier one."""
    after_restart().orm_spawner.state = {"pod_name": "p", "gpuspawner": before}
    restarted = after_restart(runs=True, begun=False)

    assert restarted.gpuspawner_gates.server_state.polled(1, None) == 1

    assert stopped(restarted) is Kind.HUB_RESTARTED
    ending = last_of(restarted.orm_spawner.state)
    assert ending is not None
    assert ending.moment > datetime.now(UTC) - timedelta(minutes=1)


async def test_a_form_begins_no_start(after_restart) -> None:
    spawner = after_restart(runs=False)

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_a_start_that_was_noted_when_it_began_writes_nothing_to_send_its_pod(
    after_restart,
) -> None:
    spawner, written = after_restart(runs=True), []
    session = object_session(spawner.orm_spawner)
    await begin(spawner)
    session.commit()
    event.listen(session, "after_flush", lambda *_: written.append(True))

    await spawner.gpuspawner_gates.server_state.send(Granted())

    assert not written


async def test_a_start_that_begins_leaves_what_kubespawner_has_stored(after_restart) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    row.state = {"pod_name": "jupyter-alice-of-6"}  # KubeSpawner 6 wrote no version
    await begin(spawner)

    assert row.state.keys() == {"pod_name", "gpuspawner"}
    assert row.state["pod_name"] == "jupyter-alice-of-6"


class Project(KubeSpawner):
    """Knows its own part of the state only once it has started, or from an earlier start."""

    async def start(self) -> Any:
        self.project = "physics"
        return await super().start()

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "project": self.project}

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        if state:
            self.project = state["project"]


async def test_a_start_begins_and_is_refused_though_a_class_can_tell_no_state_before_it(
    after_restart, caplog
) -> None:
    spawner: Any = after_restart(of=in_front_of(Project))

    await begin(spawner)
    assert spawner.orm_spawner.state.keys() == {"gpuspawner"}
    assert "no attribute 'project'" in caplog.text

    stop(spawner)  # a stop that fails would last for ever
    assert not hasattr(after_restart(of=in_front_of(Project)), "project")


async def test_where_a_pod_is_sent_is_stored_if_a_hook_has_changed_it(after_restart) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    await begin(spawner)
    spawner.namespace = "of-a-hook"

    await spawner.gpuspawner_gates.server_state.send(Granted())

    assert row.state["namespace"] == "of-a-hook"
    assert row.state["gpuspawner"].keys() == {"began"}


async def test_a_form_that_is_opened_while_a_server_starts_or_runs_begins_no_start(
    after_restart,
) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    spawner._start_pending, row.started = True, datetime(2026, 11, 25)  # noqa: DTZ001, as the hub

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_a_start_that_goes_on_in_line_after_a_restart_is_not_cut_by_another_one(
    after_restart,
) -> None:
    first = after_restart(runs=True, queue=True)
    first.gpuspawner_gates.server_state.wait(KeptPlace(1.0, Wish.ANYWAY))
    resumed = after_restart(runs=True)
    await begin(resumed)
    assert stopped(after_restart(runs=True)) is None


async def test_a_start_that_goes_on_in_line_keeps_its_place_until_it_joins(after_restart) -> None:
    """The first restart finds that it waits; the second one finds it stopped by the first."""
    first = after_restart(runs=True, queue=True)
    kept, place = first.hub.runtime(first).line.kept, KeptPlace(1.0, Wish.ANYWAY)
    first.gpuspawner_gates.server_state.wait(place)
    resumed = after_restart(runs=False)
    kept.keep(first.gpuspawner_gates.server_state.server, place)  # from the hub's database

    resumed.clear_state()
    await begin(resumed)

    assert resumed.orm_spawner is not None
    assert place_of(resumed.orm_spawner.state) == place


async def test_an_owner_who_starts_before_the_hub_has_read_the_places_keeps_theirs(
    after_restart,
) -> None:
    first = after_restart(runs=True, queue=True)
    kept, place = first.hub.runtime(first).line.kept, KeptPlace(1.0, Wish.ANYWAY)
    first.gpuspawner_gates.server_state.wait(place)
    owned: Any = after_restart(runs=False)

    owned.clear_state()
    await begin(owned)

    assert kept.find(owned.gpuspawner_gates.server_state.server) == place
    assert place_of(owned.orm_spawner.state) == place


async def test_a_start_that_waits_in_line_is_not_cut_until_it_sends_its_pod(after_restart) -> None:
    spawner = after_restart(runs=True, queue=True)
    place = KeptPlace(1.0, Wish.ANYWAY)
    await begin(spawner)
    spawner.gpuspawner_gates.server_state.wait(place)
    assert stopped(after_restart(runs=True)) is None

    spawner.gpuspawner_gates.server_state.begin()
    spawner.gpuspawner_gates.server_state.wait(place)
    await spawner.gpuspawner_gates.server_state.send(Granted())
    assert stopped(after_restart(runs=True)) is Kind.HUB_RESTARTED


def test_a_start_that_waits_is_cut_by_a_restart_that_ends_the_line(after_restart) -> None:
    first = after_restart(runs=True)
    first.gpuspawner_gates.server_state.wait(KeptPlace(1.0, Wish.ANYWAY))
    restarted = after_restart(runs=True)
    assert restarted.hub.runtime(restarted).line is None

    assert restarted.gpuspawner_gates.server_state.polled(1, None) == 1

    assert stopped(restarted) is Kind.HUB_RESTARTED


async def test_a_start_that_a_restarted_hub_finds_up_is_not_cut(after_restart) -> None:
    await after_restart(runs=True).gpuspawner_gates.server_state.send(Granted())
    restarted = after_restart(runs=True)
    restarted.gpuspawner_gates.server_state.answers()
    assert kind(restarted) is None

    again = after_restart(runs=True)
    again.gpuspawner_gates.server_state.polled(1, pod("EvictionByEvictionAPI"))

    assert stopped(again) is Kind.EVICTED


def test_others_in_line_wait_no_longer_for_a_start_that_a_restarted_hub_finds_up(
    after_restart,
) -> None:
    """Its place was stored until it was up, and the hub ended in between."""
    first = after_restart(runs=True, queue=True)
    kept = first.hub.runtime(first).line.kept
    first.gpuspawner_gates.server_state.wait(KeptPlace(1.0, Wish.ANYWAY))
    restarted = after_restart(runs=True)
    assert kept.are_awaited

    restarted.gpuspawner_gates.server_state.answers()

    assert not kept.are_awaited
    after_restart(runs=True)
    assert not kept.are_awaited  # nor does the next hub find a place


async def test_a_start_that_ended_before_the_restart_is_not_cut(after_restart) -> None:
    spawner = after_restart(runs=True)
    await spawner.gpuspawner_gates.server_state.send(Granted())

    stop(after_restart(runs=False))

    assert kind(spawner) is None
