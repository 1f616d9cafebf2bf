"""What has happened to a server that the hub still takes as up."""

from datetime import UTC, datetime

import msgspec
import pytest

from gpuspawner.kube.meta import ResourceRequirements
from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.startup import StartingPod
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.troubles.mishaps import Mishap, is_lost, mishaps
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.starts import at, ended, start

GPU = "nvidia.com/gpu"
RUNS = {"ready": True, "state": {"running": {"startedAt": at(100)}}}


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
    assert mishaps(with_a_gpu(start(notebook=RUNS, phase="Running")), node()) == []
    assert mishaps(with_a_gpu(start(notebook=RUNS, phase="Running")), None) == []


@pytest.mark.parametrize("reason", ["OOMKilled", "Error"])
def test_a_container_that_was_started_again_is_told_with_its_end(reason: str) -> None:
    notebook = {**RUNS, "restartCount": 1, "lastState": ended(137, reason, at_=60)}
    moment = datetime(2026, 11, 21, 20, 31, tzinfo=UTC)
    kind = Kind.OUT_OF_MEMORY if reason == "OOMKilled" else Kind.CRASHED

    found = mishaps(with_a_gpu(start(notebook=notebook, phase="Running")), node())

    assert found == [Mishap(kind, moment, 2**30)]


def test_a_crash_of_an_init_container_is_no_restart_of_the_server() -> None:
    init = {"restartCount": 1, "lastState": ended(1, at_=30), "state": ended(0, "Completed")}

    assert mishaps(with_a_gpu(start(notebook=RUNS, init=init, phase="Running")), node()) == []


@pytest.mark.parametrize(("healthy", "every"), [(1, 2), (0, 1)])
def test_a_node_with_fewer_gpus_than_its_pods_have_has_a_broken_one(
    healthy: int, every: int
) -> None:
    ill = node(-1, healthy=healthy, every=every)

    assert mishaps(with_a_gpu(start(notebook=RUNS)), ill) == [Mishap(Kind.DEVICE_BROKEN)]
    assert mishaps(start(notebook=RUNS), node(-1)) == []


@pytest.mark.parametrize(("healthy", "every"), [(0, 2), (0, 0), (1, 1)])
def test_a_device_plugin_that_is_away_or_counts_fewer_shares_has_broken_nothing(
    healthy: int, every: int
) -> None:
    pod = with_a_gpu(start(notebook=RUNS))

    assert mishaps(pod, node(-1, healthy=healthy, every=every)) == []


def test_a_device_that_the_kubelet_calls_unhealthy_is_told_once() -> None:
    devices = [{"name": GPU, "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}]
    pod = start(notebook={**RUNS, "allocatedResourcesStatus": devices})

    assert mishaps(pod, node()) == [Mishap(Kind.DEVICE_BROKEN)]
    assert mishaps(with_a_gpu(pod), node(-1)) == [Mishap(Kind.DEVICE_BROKEN)]


@pytest.mark.parametrize("taint", ["unreachable", "not-ready"])
def test_a_node_of_which_nobody_hears_is_lost(taint: str) -> None:
    lost = node(0, f"node.kubernetes.io/{taint}")

    assert is_lost(lost)
    assert mishaps(start(notebook=RUNS), lost) == [Mishap(Kind.NODE_LOST)]


def test_a_node_that_is_gone_is_lost_and_one_with_other_taints_is_not() -> None:
    assert is_lost(None)
    assert not is_lost(node(0, "example.org/repair"))
