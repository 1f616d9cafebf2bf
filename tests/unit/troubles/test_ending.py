"""Why a server that was up has ended, by the last that is known of its pod."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gpuspawner.kube.meta import ResourceRequirements
from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.startup import StartingPod
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


def disrupted(reason: str, message: str = "") -> list[dict[str, str]]:
    return [condition("DisruptionTarget", since=100, reason=reason, message=message)]


def deleted(asked: int, grace: int = 30) -> dict[str, Any]:
    return {"deletionTimestamp": at(asked + grace), "deletionGracePeriodSeconds": grace}


def kind(pod: StartingPod) -> Kind | None:
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
    fields: dict[str, Any], expected: Kind, notebook: Mapping[str, Any], metadata: Mapping[str, Any]
) -> None:
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
    code: int, asked: int | None, expected: Kind
) -> None:
    metadata = {} if asked is None else deleted(asked)
    notebook = {"state": ended(code, "Error" if code else "Completed", at_=100)}

    assert kind(start(notebook=notebook, metadata=metadata)) is expected


def test_too_much_memory_is_told_even_if_the_pod_is_deleted_then() -> None:
    pod = start(notebook={"state": ended(137, "OOMKilled")}, metadata=deleted(200, 0))

    assert kind(pod) is Kind.OUT_OF_MEMORY


def test_a_container_that_runs_again_has_not_ended_the_server() -> None:
    before = {**RUNS, "restartCount": 1, "lastState": ended(137, "OOMKilled")}

    assert kind(start(notebook=before, phase="Running")) is None
    assert kind(start(notebook=before, metadata=deleted(200))) is Kind.DELETED


@pytest.mark.parametrize("reason", ["Error", "OOMKilled", "Completed"])
def test_another_container_that_ends_does_not_end_the_server(reason: str) -> None:
    sidecar = {"state": ended(0 if reason == "Completed" else 1, reason, at_=60)}

    assert kind(start(notebook=RUNS, init=sidecar, metadata=deleted(200))) is Kind.DELETED


def test_a_pod_that_failed_for_no_known_reason_has_failed() -> None:
    assert kind(start(phase="Failed", notebook=RUNS)) is Kind.FAILED


def test_a_pod_that_runs_tells_no_ending() -> None:
    assert ending_of(start(notebook=RUNS, phase="Running"), NOW) is None


def test_the_figures_are_those_of_the_pod() -> None:
    pod = start(
        node="gpu-0",
        phase="Failed",
        restart_policy="Never",
        notebook={"state": ended(1, message="ImportError", at_=70)},
    )

    ending = ending_of(pod, NOW)

    finished = datetime(2026, 11, 21, 20, 31, 10, tzinfo=UTC)
    assert ending == Ending(Kind.CRASHED, finished, node="gpu-0", last_words="ImportError")


def test_the_memory_is_the_limit_of_the_container_that_took_too_much() -> None:
    pod = start(notebook={"state": ended(137, "OOMKilled")})

    assert [_memory(pod, limit) for limit in ("2Gi", "2G", "much")] == [2**31, 2 * 10**9, 0]
    assert _memory(pod, None) == 0


def _memory(pod: StartingPod, limit: str | None) -> int:
    """Return what is told of the limit if the notebook's container has this one."""
    limits = ResourceRequirements(limits={"memory": limit} if limit else None)
    made = [msgspec.structs.replace(it, resources=limits) for it in pod.spec.containers or ()]
    spec = msgspec.structs.replace(pod.spec, containers=made)
    ending = ending_of(msgspec.structs.replace(pod, spec=spec), NOW)
    return ending.memory


@pytest.mark.parametrize("grace", [2**63 - 1, 10**11, -(2**63)])
def test_a_grace_period_beyond_all_times_is_none(grace: int) -> None:
    pod = start(phase="Failed", metadata={**deleted(60), "deletionGracePeriodSeconds": grace})

    assert kind(pod) is Kind.DELETED


def test_a_limit_beyond_all_numbers_can_be_told() -> None:
    killed = start(notebook={"state": ended(137, "OOMKilled")})
    ending = replace(Ending(Kind.OUT_OF_MEMORY, NOW), memory=_memory(killed, "9" * 300 + "Ei"))

    assert "GiB" in last_server_ended(ending, NOW) or "EiB" in last_server_ended(ending, NOW)


def test_a_deleted_pod_is_overdue_only_some_time_after_its_grace() -> None:
    ends = datetime(2026, 11, 21, 20, 31, 30, tzinfo=UTC)
    pod = start(metadata=deleted(60))

    assert not is_overdue(start(), ends + timedelta(days=1))
    assert not is_overdue(pod, ends + timedelta(seconds=9))
    assert is_overdue(pod, ends + timedelta(seconds=11))


def test_what_is_written_is_read_again() -> None:
    ending = Ending(Kind.OUT_OF_MEMORY, NOW, memory=2**31, node="gpu-0")

    assert read(written(ending)) == ending


@pytest.mark.parametrize(
    "plain",
    [
        None,
        {},
        [],
        "evicted",
        {"kind": "from the future", "moment": at(0)},
        {"kind": "evicted"},
        {"kind": "evicted", "moment": "2026-11-21T20:30:00"},
    ],
)
def test_what_nobody_can_read_is_no_ending(plain: object) -> None:
    assert read(plain) is None


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def gone(name: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "hub", "deletionTimestamp": "2026-11-21T20:30:00Z"},
        "status": {"phase": "Running", "conditions": list(conditions)},
    }


def test_the_last_of_a_pod_tells_how_it_ended() -> None:
    farewells = Farewells()

    farewells.note(gone("a", EVICTED))
    farewells.note(gone("b"))

    assert [it.kind for name in "ab" if (it := farewells.of(("hub", name)))] == [
        Kind.EVICTED,
        Kind.DELETED,
    ]
    assert farewells.of(("hub", "c")) is None


def test_a_new_pod_of_the_name_is_not_told_the_old_one_s_ending() -> None:
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))

    farewells.forget(("hub", "a"))
    farewells.forget(("hub", "a"))

    assert farewells.of(("hub", "a")) is None


def test_a_pod_that_ran_until_it_was_gone_replaces_what_was_known_of_its_name() -> None:
    farewells = Farewells()
    farewells.note(gone("a", EVICTED))
    running = {"metadata": {"name": "a", "namespace": "hub"}, "status": {"phase": "Running"}}

    farewells.note(running)

    assert farewells.of(("hub", "a")) is None


def test_the_oldest_are_forgotten_first() -> None:
    farewells = Farewells(most=2)

    for name in ("a", "b", "a", "c"):
        farewells.note(gone(name, EVICTED))

    kept = [name for name in "abc" if farewells.of(("hub", name))]
    assert kept == ["a", "c"]


def test_what_nobody_can_read_is_skipped() -> None:
    farewells = Farewells()

    for pod in (None, "text", {"metadata": 3}, {"status": {"conditions": "none"}}):
        farewells.note(pod)


GPU = "nvidia.com/gpu"
RUNS_ON = {"ready": True, "state": {"running": {"startedAt": at(100)}}}


def node(free: int = 0, *taints: str, healthy: int = 1, every: int = 2) -> NodeInfo:
    info = NodeInfo("gpu-0")
    info.free, info.allocatable, info.capacity = {GPU: free}, {GPU: healthy}, {GPU: every}
    info.taints = tuple(Taint(key, effect="NoExecute") for key in taints)
    return info


def with_a_gpu(pod: StartingPod) -> StartingPod:
    limits = ResourceRequirements(limits={GPU: "1", "memory": "1Gi"})
    made = [msgspec.structs.replace(it, resources=limits) for it in pod.spec.containers or ()]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=made))


def test_nothing_has_happened_to_most_servers() -> None:
    assert mishaps(with_a_gpu(start(notebook=RUNS_ON, phase="Running")), node()) == []
    assert mishaps(with_a_gpu(start(notebook=RUNS_ON, phase="Running")), None) == []


@pytest.mark.parametrize("reason", ["OOMKilled", "Error"])
def test_a_container_that_was_started_again_is_told_with_its_end(reason: str) -> None:
    notebook = {**RUNS_ON, "restartCount": 1, "lastState": ended(137, reason, at_=60)}
    moment = datetime(2026, 11, 21, 20, 31, tzinfo=UTC)
    kind = Kind.OUT_OF_MEMORY if reason == "OOMKilled" else Kind.CRASHED

    found = mishaps(with_a_gpu(start(notebook=notebook, phase="Running")), node())

    assert found == [Mishap(kind, moment, 2**30)]


def test_a_crash_of_an_init_container_is_no_restart_of_the_server() -> None:
    init = {"restartCount": 1, "lastState": ended(1, at_=30), "state": ended(0, "Completed")}

    assert mishaps(with_a_gpu(start(notebook=RUNS_ON, init=init, phase="Running")), node()) == []


@pytest.mark.parametrize(("healthy", "every"), [(1, 2), (0, 1)])
def test_a_node_with_fewer_gpus_than_its_pods_have_has_a_broken_one(
    healthy: int, every: int
) -> None:
    ill = node(-1, healthy=healthy, every=every)

    assert mishaps(with_a_gpu(start(notebook=RUNS_ON)), ill) == [Mishap(Kind.DEVICE_BROKEN)]
    assert mishaps(start(notebook=RUNS_ON), node(-1)) == []


@pytest.mark.parametrize(("healthy", "every"), [(0, 2), (0, 0), (1, 1)])
def test_a_device_plugin_that_is_away_or_counts_fewer_shares_has_broken_nothing(
    healthy: int, every: int
) -> None:
    pod = with_a_gpu(start(notebook=RUNS_ON))

    assert mishaps(pod, node(-1, healthy=healthy, every=every)) == []


def test_a_device_that_the_kubelet_calls_unhealthy_is_told_once() -> None:
    devices = [{"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}]
    pod = start(notebook={**RUNS_ON, "allocatedResourcesStatus": devices})

    assert mishaps(pod, node()) == [Mishap(Kind.DEVICE_BROKEN)]
    assert mishaps(with_a_gpu(pod), node(-1)) == [Mishap(Kind.DEVICE_BROKEN)]


@pytest.mark.parametrize("taint", ["unreachable", "not-ready"])
def test_a_node_of_which_nobody_hears_is_lost(taint: str) -> None:
    lost = node(0, f"node.kubernetes.io/{taint}")

    assert is_lost(lost)
    assert mishaps(start(notebook=RUNS_ON), lost) == [Mishap(Kind.NODE_LOST)]


def test_a_node_that_is_gone_is_lost_and_one_with_other_taints_is_not() -> None:
    assert is_lost(None)
    assert not is_lost(node(0, "example.org/repair"))
