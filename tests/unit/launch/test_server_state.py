"""A spawner knows how its last server ended, and so does the hub's database."""

from datetime import UTC, datetime, timedelta
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest
from kubespawner import KubeSpawner
from msgspec.structs import replace
from sqlalchemy import event
from sqlalchemy.orm import object_session

from gpuspawner.cluster.health import Forbidden, Live, Reading
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
PLACE = KeptPlace(1.0, Wish.ANYWAY)


def state_of(spawner):
    return spawner.gpuspawner_gates.server_state


@pytest.fixture
def up(restart):
    """A spawner whose server is up."""
    spawner = restart(runs=True)
    state_of(spawner).answers()
    return spawner


@pytest.fixture
def is_gone(monkeypatch):
    """Let each server's pod be gone as soon as the hub stops it."""
    monkeypatch.setattr(KubeSpawner, "stop", AsyncMock())


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
def test_the_hub_stores_how_a_server_ended_that_was_up(up, farewell, polled, expected):
    if farewell:
        state_of(up).farewell(pod(farewell))

    assert [state_of(up).polled(1, it) for it in polled] == [1] * len(polled)
    assert stopped(up) is expected


def test_an_ending_is_stored_before_the_hub_stores_that_the_server_has_stopped(restart, up):
    """The hub may end in between, and the pod is gone then."""
    state_of(up).polled(1, pod("EvictionByEvictionAPI"))
    assert kind(up) is Kind.EVICTED

    again = restart(runs=True)
    state_of(again).polled(1, None)
    assert stopped(again) is Kind.EVICTED


@pytest.mark.usefixtures("is_gone")
async def test_a_stop_by_somebody_else_is_stored(up):
    state_of(up).stopped_by_another()
    assert state_of(up).why == "stopped"
    await up.stop()

    assert kind(up) is stopped(up) is Kind.STOPPED


def test_a_stop_by_somebody_else_is_not_stored_of_a_server_that_has_ended_already(up):
    state_of(up).polled(1, pod("EvictionByEvictionAPI"))
    state_of(up).stopped_by_another()

    assert stopped(up) is Kind.EVICTED


@pytest.mark.usefixtures("is_gone")
async def test_a_start_whose_pod_was_sent_is_cut_by_a_restart_of_the_hub(restart):
    await state_of(restart(runs=True)).send(Granted())
    restarted = restart(runs=True)
    assert state_of(restarted).polled(None, pod()) is None

    await restarted.stop()

    assert kind(restarted) is Kind.HUB_RESTARTED  # before the hub has stored that it has stopped


def test_a_pod_that_has_ended_meanwhile_and_stays_tells_why(up):
    set_pod(up, pod("EvictionByEvictionAPI"))

    state_of(up).polled(1, pod())

    assert stopped(up) is Kind.EVICTED


async def test_a_locked_database_keeps_no_server_up_and_has_its_ending_afterwards(
    hub_with, tmp_path, caplog
):
    database = FileDatabase(tmp_path)
    up = restarting(hub_with(NODE), database)(runs=True)
    state_of(up).answers()

    with database.locked():
        assert state_of(up).polled(1, pod("EvictionByEvictionAPI")) == 1
        state_of(up).store()

    await until(lambda: kind(up) is Kind.EVICTED)
    assert caplog.text.count("database is locked") == 1


def test_a_bug_of_ours_leaves_kubespawner_s_own_status(up, monkeypatch, caplog):
    for broken in ("launch.server_state.read_pod", "troubles.ending.ending_of"):
        monkeypatch.setattr(f"gpuspawner.{broken}", Mock(side_effect=KeyError("a bug")))

    assert state_of(up).polled(None, pod()) is None
    assert state_of(up).polled(1, pod()) == 1
    state_of(up).farewell(pod("EvictionByEvictionAPI"))
    assert "Can't note how a pod ended" in caplog.text


def test_the_farewell_of_an_older_pod_is_not_that_of_the_server(up):
    state_of(up).farewell(pod("PreemptionByScheduler"))
    state_of(up).answers()

    state_of(up).polled(1, None)

    assert stopped(up) is Kind.DELETED


def test_a_server_that_the_hub_stops_has_no_ending(up):
    assert state_of(up).polled(None, pod()) is None
    stop(up)
    assert state_of(up).polled(1, None) == 1

    assert kind(up) is None
    assert "gpuspawner" not in up.get_state()


async def test_a_start_that_fails_is_no_ending(restart):
    spawner = restart()
    await state_of(spawner).send(Granted())

    assert state_of(spawner).polled(1, None) == 1

    assert stopped(spawner) is None
    assert "gpuspawner" not in spawner.get_state()


def test_without_a_connection_nobody_knows_that_a_server_has_ended(up):
    up.api = None

    assert state_of(up).polled(1, None) == 1

    assert stopped(up) is None


@pytest.mark.parametrize(("seconds", "status"), [(5, None), (60, 1)])
def test_a_pod_that_should_be_gone_is_no_server(up, seconds, status):
    ended = datetime.now(UTC) - timedelta(seconds=seconds)
    deleted = pod("EvictionByEvictionAPI", deletionTimestamp=ended.isoformat())

    assert state_of(up).polled(None, deleted) == status

    assert stopped(up) is (Kind.EVICTED if status else None)


@pytest.mark.parametrize(
    ("node", "seen", "expected"),
    [
        ("gpu-0", Live(0.5), Kind.TAINTED),
        ("gone", Live(0.5), Kind.NODE_LOST),
        ("gone", Reading(1.0), Kind.TAINTED),
        ("gone", Forbidden(("nodes",), "no"), Kind.TAINTED),
    ],
    ids=["drained", "lost", "before the hub sees nodes", "without the right to see nodes"],
)
def test_a_node_that_is_lost_is_told_from_one_that_is_drained(up, node, seen, expected):
    drained = pod("DeletionByTaintManager")
    drained["spec"]["nodeName"] = node
    up.hub.view.now = seen

    state_of(up).polled(1, drained)

    assert stopped(up) is expected


def test_an_ending_is_kept_over_a_restart_and_until_a_start_is_allowed(restart, up):
    state_of(up).polled(1, pod("EvictionByEvictionAPI"))
    stop(up)
    spawner = restart()

    stop(spawner)  # a start that the hub has refused
    assert kind(spawner) is Kind.EVICTED
    state_of(spawner).forget()

    assert stopped(spawner) is None


@pytest.mark.parametrize(
    "ours", [None, 3, [], {"ending": 3}, {"ending": {"kind": "?"}, "began": 3}, {"began": None}]
)
def test_a_state_that_nobody_can_read_tells_nothing(restart, ours):
    spawner = restart(runs=True)
    spawner.load_state({"pod_name": "jupyter-alice", "gpuspawner": ours})

    assert stopped(spawner) is None
    assert last_of(ours) is None


def test_an_ending_is_stored_beside_what_kubespawner_stores(restart):
    spawner = restart()
    spawner.load_state({"gpuspawner": {"ending": written(EVICTED)}, "pod_name": "other"})

    state = spawner.get_state()

    assert last_of(state) == EVICTED
    assert state["pod_name"] == "other"


@pytest.mark.parametrize(
    "row", [None, MagicMock(server=None, state={})], ids=["none", "a stand-in, as in tests"]
)
async def test_a_spawner_without_a_row_loads_and_sends_all_the_same(hub_with, row):
    spawner = hub_with(NODE).spawner()
    spawner.orm_spawner = row

    spawner.load_state({"gpuspawner": {"ending": written(EVICTED)}})
    await state_of(spawner).send(Granted())

    assert last_of(spawner.get_state()) == EVICTED


def test_a_stored_place_is_awaited_if_there_is_a_line(restart):
    spawner = restart(runs=True, queue=True)

    spawner.load_state({"gpuspawner": {"place": PLACE.written()}})

    assert spawner.hub.runtime(spawner).line.stored_places.are_awaited


POLICIES = {"p": {"gpus_per_user": 1}}


def noted(spawner):
    """What the hub has stored by which the server's pod is known."""
    return granted.stored(spawner.orm_spawner.state.get("gpuspawner"))


async def test_a_server_s_grant_and_its_pod_s_uid_are_stored_until_its_next_start(restart):
    first, given = restart(runs=True, policies=POLICIES), Granted("t4", ("p",), ("course",))
    await state_of(first).send(given)
    assert noted(first) == given

    set_pod(first, pod())
    state_of(first).answers()
    stop(first)
    stopped_again = restart()
    stop(stopped_again)
    assert noted(stopped_again) == replace(given, pod="1")

    await begin(stopped_again)
    assert noted(stopped_again) == replace(given, pod="1")  # it may still be there
    await state_of(stopped_again).send(given)
    assert noted(stopped_again) == given


@pytest.mark.parametrize("is_up", [True, False])
async def test_a_server_that_is_up_counts_whatever_is_stored_of_it(restart, is_up):
    """KubeSpawner without gpuspawner stores a state only once the server is up."""
    spawner = restart(runs=True, begun=False, policies=POLICIES)
    running = spawner.hub.runtime(spawner)
    where = {"name": spawner.pod_name, "namespace": spawner.namespace, "uid": "1"}
    running.accounts.ledger.put(server_pod(metadata=where))
    if is_up:
        state_of(spawner).answers()

    state_of(spawner).polled(None, pod())

    assert bool(running.accounts.usage.of_owner({spawner.user.id})) == is_up


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_no_pod_that_has_ended_is_kept_to_count_for_its_owner(restart, phase):
    """KubeSpawner shows it until the hub has deleted it; the watch that counts doesn't."""
    spawner = restart(runs=True, policies=POLICIES)
    state_of(spawner).answers()

    state_of(spawner).polled(1, {**pod(), "status": {"phase": phase}})

    assert not spawner.hub.runtime(spawner).accounts.ledger.claims.pods


def test_a_server_whose_class_can_t_tell_its_state_is_polled(up, monkeypatch, caplog):
    monkeypatch.setattr(up, "get_state", Mock(side_effect=ValueError("no state")))

    assert state_of(up).polled(1, pod("EvictionByEvictionAPI")) == 1
    assert "no state" in caplog.text


async def test_a_pod_is_known_that_a_failed_stop_of_a_failed_start_leaves(restart):
    spawner = restart(runs=True, policies=POLICIES)
    await state_of(spawner).send(Granted())
    state_of(spawner).polled(None, pod())  # the hub looks before it stops it
    stop(spawner)

    assert noted(spawner) == Granted(pod="1")


@pytest.mark.parametrize("state", [None, {"pod_name": "p"}, {"gpuspawner": 3}])
def test_a_state_without_a_place_stays_without_one(state):
    assert place_of(without_place(state)) is None


def test_who_has_no_place_any_more_keeps_the_rest_of_the_state():
    ours = {"place": KeptPlace(1.0, Wish.HERE).written(), "ending": written(EVICTED)}

    left = without_place({"pod_name": "p", "gpuspawner": ours})

    assert left == {"pod_name": "p", "gpuspawner": {"ending": written(EVICTED)}}


async def test_a_start_that_has_begun_is_cut_by_a_restart_of_the_hub(restart):
    spawner = restart(runs=True)
    await begin(spawner)

    assert stopped(restart(runs=True)) is Kind.HUB_RESTARTED


@pytest.mark.parametrize("before", [{}, {"began": "2026-11-21T20:30:00+00:00"}])
def test_a_start_that_has_not_begun_is_cut_too_and_nobody_has_deleted_its_pod(restart, before):
    """The hub has stored that there is a server; what else it has stored is of an earlier one."""
    restart().orm_spawner.state = {"pod_name": "p", "gpuspawner": before}
    restarted = restart(runs=True, begun=False)

    assert state_of(restarted).polled(1, None) == 1

    assert stopped(restarted) is Kind.HUB_RESTARTED
    ending = last_of(restarted.orm_spawner.state)
    assert ending.moment > datetime.now(UTC) - timedelta(minutes=1)


async def test_a_form_begins_no_start(restart):
    spawner = restart()

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_to_send_a_pod_nothing_is_written_that_was_noted_before(restart):
    spawner, flush = restart(runs=True), Mock()
    session = object_session(spawner.orm_spawner)
    await begin(spawner)
    session.commit()
    event.listen(session, "after_flush", flush)

    await state_of(spawner).send(Granted())

    assert not flush.called


async def test_a_start_that_begins_leaves_what_kubespawner_has_stored(restart):
    spawner = restart(runs=True)
    spawner.orm_spawner.state = {"pod_name": "of-6"}  # KubeSpawner 6 wrote no version
    await begin(spawner)

    assert spawner.orm_spawner.state.keys() == {"pod_name", "gpuspawner"}
    assert spawner.orm_spawner.state["pod_name"] == "of-6"


class Project(KubeSpawner):
    """Knows its own part of the state only once it has started, or from an earlier start."""

    async def start(self):
        self.project = "physics"
        return await super().start()

    def get_state(self):
        return {**super().get_state(), "project": self.project}

    def load_state(self, state):
        super().load_state(state)
        if state:
            self.project = state["project"]


async def test_a_start_begins_and_is_refused_though_a_class_can_tell_no_state_before_it(
    restart, caplog
):
    spawner = restart(of=in_front_of(Project))

    await begin(spawner)
    assert spawner.orm_spawner.state.keys() == {"gpuspawner"}
    assert "no attribute 'project'" in caplog.text

    stop(spawner)  # a stop that fails would last for ever
    assert not hasattr(restart(of=in_front_of(Project)), "project")


async def test_where_a_pod_is_sent_is_stored_if_a_hook_has_changed_it(restart):
    spawner = restart(runs=True)
    await begin(spawner)
    spawner.namespace = "of-a-hook"

    await state_of(spawner).send(Granted())

    assert spawner.orm_spawner.state["namespace"] == "of-a-hook"
    assert spawner.orm_spawner.state["gpuspawner"].keys() == {"began"}


async def test_a_form_that_is_opened_while_a_server_runs_begins_no_start(restart):
    spawner = restart(runs=True)
    spawner._start_pending = True

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_a_start_that_a_restart_leaves_in_line_is_not_cut_by_another_one(restart):
    state_of(restart(runs=True, queue=True)).wait(PLACE)
    await begin(restart(runs=True))

    assert stopped(restart(runs=True)) is None


async def test_a_start_that_goes_on_in_line_keeps_its_place_until_it_joins(restart):
    """The first restart finds that it waits; the second one finds it stopped by the first."""
    first = restart(runs=True, queue=True)
    state_of(first).wait(PLACE)
    resumed = restart(runs=False)
    line = first.hub.runtime(first).line
    line.stored_places.keep(state_of(first).server, PLACE)  # from the hub's database

    resumed.clear_state()
    await begin(resumed)

    assert place_of(resumed.orm_spawner.state) == PLACE


async def test_an_owner_who_starts_before_the_hub_has_read_the_places_keeps_theirs(restart):
    first = restart(runs=True, queue=True)
    state_of(first).wait(PLACE)
    owned = restart(runs=False)

    owned.clear_state()
    await begin(owned)

    assert first.hub.runtime(first).line.stored_places.find(state_of(owned).server) == PLACE
    assert place_of(owned.orm_spawner.state) == PLACE


async def test_a_start_that_waits_in_line_is_not_cut_until_it_sends_its_pod(restart):
    spawner = restart(runs=True, queue=True)
    await begin(spawner)
    state_of(spawner).wait(PLACE)
    assert stopped(restart(runs=True)) is None

    state_of(spawner).begin()
    state_of(spawner).wait(PLACE)
    await state_of(spawner).send(Granted())
    assert stopped(restart(runs=True)) is Kind.HUB_RESTARTED


def test_a_start_that_waits_is_cut_by_a_restart_that_ends_the_line(restart):
    state_of(restart(runs=True)).wait(PLACE)
    restarted = restart(runs=True)
    assert restarted.hub.runtime(restarted).line is None

    assert state_of(restarted).polled(1, None) == 1

    assert stopped(restarted) is Kind.HUB_RESTARTED


async def test_a_start_that_a_restarted_hub_finds_up_is_not_cut(restart):
    await state_of(restart(runs=True)).send(Granted())
    restarted = restart(runs=True)
    state_of(restarted).answers()
    assert kind(restarted) is None

    again = restart(runs=True)
    state_of(again).polled(1, pod("EvictionByEvictionAPI"))

    assert stopped(again) is Kind.EVICTED


def test_others_in_line_wait_no_longer_for_a_start_that_a_restarted_hub_finds_up(restart):
    """Its place was stored until it was up, and the hub ended in between."""
    first = restart(runs=True, queue=True)
    kept = first.hub.runtime(first).line.stored_places
    state_of(first).wait(PLACE)
    restarted = restart(runs=True)
    assert kept.are_awaited

    state_of(restarted).answers()

    assert not kept.are_awaited
    restart(runs=True)
    assert not kept.are_awaited  # nor does the next hub find a place


async def test_a_start_that_ended_before_the_restart_is_not_cut(restart):
    spawner = restart(runs=True)
    await state_of(spawner).send(Granted())

    stop(restart(runs=False))

    assert kind(spawner) is None
