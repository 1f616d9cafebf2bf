"""Which group grows for the pods that wait, and what the others are told."""

from __future__ import annotations

from typing import Any

from localcluster import NodeGroup, Scaling
from localcluster.client import Object
from localcluster.clusterautoscaler.decision import Cluster, Decision, decide
from localcluster.clusterautoscaler.groups import Backoff, Group
from localcluster.nodes import node_object, starting_node
from tests.unit.makers.objects import KINDS

NOW = 1000.0
CPU = {"cpu": "4", "memory": "16Gi", "pods": "110"}
OTHERS: dict[str, list[Object]] = {kind: [] for kind in KINDS if kind != "pods"}


def group(name: str, gpus: int, **scaling: Any) -> Group:
    settings = Scaling(**{"max_size": 3, **scaling})
    allocatable = {**CPU, "nvidia.com/gpu": str(gpus)} if gpus else CPU
    shape = NodeGroup(name, 0, allocatable, {"pool": name}, scaling=settings)
    return Group(shape, settings, Backoff(300.0, 1800.0))


def pod(name: str, pool: str = "", gpus: int = 1, **spec: Any) -> Object:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "c", "image": "i", "resources": {"limits": limits, "requests": limits}}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name},
        "spec": {
            "containers": [container],
            "nodeSelector": {"pool": pool} if pool else {},
            "schedulerName": "default-scheduler",
            **spec,
        },
        "status": {"phase": "Pending", "conditions": [condition]},
    }


def ask(pods: list[Object], groups: list[Group]) -> Decision:
    nodes = [node for group in groups for node in group.nodes]
    return decide(Cluster(nodes, pods, OTHERS), groups, NOW)


def names(decision: Decision) -> list[str]:
    assert decision.growth
    return [pod["metadata"]["name"] for pod in decision.growth.pods]


def test_pods_are_packed_on_as_few_new_nodes_as_they_need() -> None:
    decision = ask([pod("a"), pod("b"), pod("c")], [group("g", gpus=2)])

    assert str(decision.growth) == "{g 0->2 (max: 3)}"
    assert names(decision) == ["a", "b", "c"]


def test_pods_beyond_the_maximum_are_not_helped_and_not_told_yet() -> None:
    decision = ask([pod("a"), pod("b"), pod("c")], [group("g", gpus=1, max_size=2)])

    assert str(decision.growth) == "{g 0->2 (max: 2)}"
    assert names(decision) == ["a", "b"]
    assert decision.reasons == []


def test_a_pod_that_fits_on_a_node_on_its_way_triggers_nothing() -> None:
    g = group("g", gpus=1)
    g.request(1, NOW)

    assert ask([pod("a")], [g]) == Decision()


def test_a_node_that_waits_for_its_devices_counts_as_complete() -> None:
    g = group("g", gpus=1)
    g.request(1, NOW)
    bare = node_object("g-0", g.shape)
    bare["status"]["allocatable"] = CPU
    g.see([bare])

    assert ask([pod("a")], [g]) == Decision()


def test_a_node_that_is_not_ready_yet_counts_once() -> None:
    g = group("g", gpus=1)
    g.request(1, NOW)
    g.see([starting_node("g-0", g.shape, device_seconds=0.0)])

    assert str(ask([pod("a"), pod("b")], [g]).growth) == "{g 1->2 (max: 3)}"


def test_the_group_that_helps_most_pods_grows() -> None:
    decision = ask([pod("a"), pod("b", pool="y")], [group("x", gpus=1), group("y", gpus=1)])

    assert str(decision.growth) == "{y 0->2 (max: 3)}"


def test_of_equal_groups_the_first_of_the_fleet_grows() -> None:
    decision = ask([pod("a")], [group("x", gpus=1), group("y", gpus=1)])

    assert str(decision.growth) == "{x 0->1 (max: 3)}"


def test_a_pod_is_told_why_no_group_helps_it() -> None:
    full, failed = group("full", gpus=1, max_size=0), group("failed", gpus=1)
    failed.backoff.fail(NOW)
    other = group("other", gpus=0)

    decision = ask([pod("a")], [full, failed, other])

    assert decision.growth is None
    [(_, told)] = decision.reasons
    assert set(told.split(", ")) == {
        "1 max node group size reached",
        "1 in backoff after failed scale-up",
        "1 Insufficient nvidia.com/gpu",
    }


def test_groups_with_the_same_reason_are_counted() -> None:
    decision = ask([pod("a")], [group("x", 1, max_size=0), group("y", 1, max_size=0)])

    assert [told for _, told in decision.reasons] == ["2 max node group size reached"]


def test_after_the_back_off_a_group_grows_again() -> None:
    g = group("g", gpus=1)
    g.backoff.fail(NOW - 300.0)

    assert str(ask([pod("a")], [g]).growth) == "{g 0->1 (max: 3)}"


def test_pods_that_need_no_node_are_left_alone() -> None:
    bound = pod("bound", nodeName="elsewhere")
    expendable = pod("expendable", priority=-11)
    nominated = pod("nominated")
    nominated["status"]["nominatedNodeName"] = "elsewhere"
    gated = pod("gated")
    gated["status"]["conditions"][0]["reason"] = "SchedulingGated"

    assert ask([bound, expendable, nominated, gated], [group("g", gpus=1)]) == Decision()


def test_pods_of_the_charts_user_scheduler_count_too() -> None:
    theirs = pod("a", schedulerName="jhub-user-scheduler")

    assert names(ask([theirs], [group("g", gpus=1)])) == ["a"]
    [(_, told)] = ask([theirs], [group("g", gpus=0)]).reasons
    assert told == "1 Insufficient nvidia.com/gpu"
