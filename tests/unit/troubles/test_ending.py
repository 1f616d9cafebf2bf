"""Why a server that was up has ended, by the last that is known of its pod."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.kube.nodes import Taint
from gpuspawner.messages import last_server_ended
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.troubles.ending import (
    Ending,
    Farewells,
    Mishap,
    ending_of,
    is_lost,
    is_overdue,
    mishaps,
    read,
    written,
)
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.starts import at, condition, ended, start

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
RUNS = {"ready": True, "state": {"running": {"startedAt": at(10)}}}
KILLED = {"state": ended(137, "Error", at_=100)}
LOST = {"state": ended(137, "ContainerStatusUnknown", at_=100)}
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. "


def disrupted(reason, message=""):
    return [condition("DisruptionTarget", since=100, reason=reason, message=message)]


def deleted(asked, grace=30):
    return {"deletionTimestamp": at(asked + grace), "deletionGracePeriodSeconds": grace}


def kind(pod):
    ending = ending_of(pod, NOW)
    return ending.kind if ending else None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"conditions": disrupted("PreemptionByScheduler")}, Kind.PREEMPTED),
        ({"conditions": disrupted("DeletionByTaintManager")}, Kind.TAINTED),
        ({"conditions": disrupted("EvictionByEvictionAPI")}, Kind.EVICTED),
        ({"conditions": disrupted("DeletionByPodGC")}, Kind.NODE_LOST),
        ({"conditions": disrupted("TerminationByKubelet", LOW)}, Kind.NODE_PRESSURE),
        ({"phase": "Failed", "reason": "Evicted", "message": LOW}, Kind.NODE_PRESSURE),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, Kind.DEADLINE),
        ({"phase": "Failed", "reason": "Terminated"}, Kind.NODE_SHUTDOWN),
    ],
)
@pytest.mark.parametrize("notebook", [RUNS, KILLED, LOST])
@pytest.mark.parametrize("metadata", [{}, deleted(90), deleted(110, 0)])
def test_what_kubernetes_says_of_the_pod_comes_before_what_follows_from_it(
    fields, expected, notebook, metadata
):
    assert kind(start(notebook=notebook, metadata=metadata, **fields)) is expected


@pytest.mark.parametrize(
    ("code", "asked", "expected"),
    [
        (1, None, Kind.CRASHED),
        (1, 101, Kind.CRASHED),
        (143, 100, Kind.DELETED),
        (143, 70, Kind.DELETED),
        (0, None, Kind.ENDED),
        (0, 101, Kind.ENDED),
        (0, 99, Kind.DELETED),
    ],
)
def test_a_container_that_ends_after_the_pod_s_deletion_has_not_ended_by_itself(
    code, asked, expected
):
    metadata = {} if asked is None else deleted(asked)
    notebook = {"state": ended(code, "Error" if code else "Completed", at_=100)}

    assert kind(start(notebook=notebook, metadata=metadata)) is expected


def test_too_much_memory_is_told_even_if_the_pod_is_deleted_then():
    pod = start(notebook={"state": ended(137, "OOMKilled")}, metadata=deleted(200, 0))

    assert kind(pod) is Kind.OUT_OF_MEMORY


def test_a_container_that_runs_again_has_not_ended_the_server():
    before = {**RUNS, "restartCount": 1, "lastState": ended(137, "OOMKilled")}

    assert kind(start(notebook=before, phase="Running")) is None
    assert kind(start(notebook=before, metadata=deleted(200))) is Kind.DELETED


@pytest.mark.parametrize("reason", ["Error", "OOMKilled", "Completed"])
def test_another_container_that_ends_does_not_end_the_server(reason):
    sidecar = {"state": ended(0 if reason == "Completed" else 1, reason, at_=60)}

    assert kind(start(notebook=RUNS, init=sidecar, metadata=deleted(200))) is Kind.DELETED


def test_a_pod_that_failed_for_no_known_reason_has_failed():
    assert kind(start(phase="Failed", notebook=RUNS)) is Kind.FAILED
    assert kind(start(phase="Running", notebook=RUNS)) is None


def test_the_figures_are_those_of_the_pod():
    pod = start(
        node="gpu-0",
        phase="Failed",
        restart_policy="Never",
        notebook={"state": ended(1, message="ImportError", at_=70)},
    )

    ending = ending_of(pod, NOW)

    finished = datetime(2026, 11, 21, 20, 31, 10, tzinfo=UTC)
    assert ending == Ending(Kind.CRASHED, finished, node="gpu-0", last_words="ImportError")


@pytest.mark.parametrize(
    ("limit", "told"),
    [("2Gi", "its 2 GiB of memory"), ("much", "more memory than it had"), ("9" * 300 + "Ei", "iB")],
)
def test_the_memory_is_the_limit_of_the_container_that_took_too_much(limit, told):
    pod = start(notebook={"state": ended(137, "OOMKilled")}, limits={"memory": limit})

    assert told in last_server_ended(ending_of(pod, NOW), NOW)


@pytest.mark.parametrize("grace", [2**63 - 1, 10**11, -(2**63)])
def test_a_grace_period_beyond_all_times_is_none(grace):
    pod = start(phase="Failed", metadata={**deleted(60), "deletionGracePeriodSeconds": grace})

    assert kind(pod) is Kind.DELETED


def test_a_deleted_pod_is_overdue_only_some_time_after_its_grace():
    ends = datetime(2026, 11, 21, 20, 31, 30, tzinfo=UTC)
    pod = start(metadata=deleted(60))

    assert not is_overdue(start(), ends + timedelta(days=1))
    assert not is_overdue(pod, ends + timedelta(seconds=9))
    assert is_overdue(pod, ends + timedelta(seconds=11))


def test_what_is_written_is_read_again():
    ending = Ending(Kind.OUT_OF_MEMORY, NOW, memory=2**31, node="gpu-0")

    assert read(written(ending)) == ending


@pytest.mark.parametrize(
    "plain",
    [
        *(None, {}, [], "evicted", {"kind": "evicted"}),
        {"kind": "from the future", "moment": at(0)},
        {"kind": "evicted", "moment": "2026-11-21T20:30:00"},
    ],
)
def test_what_nobody_can_read_is_no_ending(plain):
    assert read(plain) is None


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def gone(name, *conditions):
    return {
        "metadata": {"name": name, "namespace": "hub", "deletionTimestamp": "2026-11-21T20:30:00Z"},
        "status": {"phase": "Running", "conditions": list(conditions)},
    }


def test_the_last_of_a_pod_tells_how_it_ended():
    farewells = Farewells()

    farewells.note(gone("a", EVICTED))
    farewells.note(gone("b"))

    assert [it.kind for name in "ab" if (it := farewells.of(("hub", name)))] == [
        Kind.EVICTED,
        Kind.DELETED,
    ]
    assert farewells.of(("hub", "c")) is None


def test_a_new_pod_of_the_name_is_not_told_the_old_one_s_ending():
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))

    farewells.forget(("hub", "a"))
    farewells.forget(("hub", "a"))

    assert farewells.of(("hub", "a")) is None


def test_a_pod_that_ran_until_it_was_gone_replaces_what_was_known_of_its_name():
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))
    running = {"metadata": {"name": "a", "namespace": "hub"}, "status": {"phase": "Running"}}

    farewells.note(running)

    assert farewells.of(("hub", "a")) is None


def test_the_oldest_are_forgotten_first():
    farewells = Farewells(most=2)

    for name in ("a", "b", "a", "c"):
        farewells.note(gone(name, EVICTED))

    kept = [name for name in "abc" if farewells.of(("hub", name))]
    assert kept == ["a", "c"]


def test_what_nobody_can_read_is_skipped():
    farewells = Farewells()

    for pod in (None, "text", {"metadata": 3}, {"status": {"conditions": "none"}}):
        farewells.note(pod)


GPU = "nvidia.com/gpu"
ONE = {GPU: "1", "memory": "1Gi"}
RUNS_ON = {"ready": True, "state": {"running": {"startedAt": at(100)}}}


def node(free=0, *taints, healthy=1, every=2):
    info = NodeInfo("gpu-0")
    info.free, info.allocatable, info.capacity = {GPU: free}, {GPU: healthy}, {GPU: every}
    info.taints = tuple(Taint(key, effect="NoExecute") for key in taints)
    return info


@pytest.mark.parametrize(
    ("reason", "kind"), [("OOMKilled", Kind.OUT_OF_MEMORY), ("Error", Kind.CRASHED)]
)
def test_a_container_that_was_started_again_is_told_with_its_end(reason, kind):
    notebook = {**RUNS_ON, "restartCount": 1, "lastState": ended(137, reason, at_=60)}
    moment = datetime(2026, 11, 21, 20, 31, tzinfo=UTC)

    assert mishaps(start(notebook=notebook, limits=ONE), node()) == [Mishap(kind, moment, 2**30)]


def test_a_crash_of_an_init_container_is_no_restart_of_the_server():
    init = {"restartCount": 1, "lastState": ended(1, at_=30), "state": ended(0, "Completed")}

    assert mishaps(start(notebook=RUNS_ON, init=init, limits=ONE), node()) == []
    assert mishaps(start(notebook=RUNS_ON, init=init, limits=ONE), None) == []


@pytest.mark.parametrize(("healthy", "every"), [(1, 2), (0, 1)])
def test_a_node_with_fewer_gpus_than_its_pods_have_has_a_broken_one(healthy, every):
    ill = node(-1, healthy=healthy, every=every)

    assert mishaps(start(notebook=RUNS_ON, limits=ONE), ill) == [Mishap(Kind.DEVICE_BROKEN)]
    assert mishaps(start(notebook=RUNS_ON), node(-1)) == []


@pytest.mark.parametrize(("healthy", "every"), [(0, 2), (0, 0), (1, 1)])
def test_a_device_plugin_that_is_away_or_counts_fewer_shares_has_broken_nothing(healthy, every):
    pod = start(notebook=RUNS_ON, limits=ONE)

    assert mishaps(pod, node(-1, healthy=healthy, every=every)) == []


def test_a_device_that_the_kubelet_calls_unhealthy_is_told_once():
    devices = [{"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}]
    pod = start(notebook={**RUNS_ON, "allocatedResourcesStatus": devices}, limits=ONE)

    assert mishaps(pod, node(0)) == mishaps(pod, node(-1)) == [Mishap(Kind.DEVICE_BROKEN)]


@pytest.mark.parametrize("taint", ["unreachable", "not-ready"])
def test_a_node_of_which_nobody_hears_is_lost(taint):
    lost = node(0, f"node.kubernetes.io/{taint}")

    assert mishaps(start(notebook=RUNS_ON), lost) == [Mishap(Kind.NODE_LOST)]
    assert [is_lost(it) for it in (lost, None, node(0, "example.org/repair"))] == [1, 1, 0]
