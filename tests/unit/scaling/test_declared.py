"""Pools that can grow, as judged by their existing nodes and by the administrator's settings."""

from datetime import UTC, datetime

import pytest

from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Source,
    WhyNoNode,
)
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.outlooks import (
    GPU_TAINT,
    T4,
    TOLERATION,
    Cluster,
    node,
    outlook,
    plain_pod,
    pod,
    state,
)

POOL = Accelerator(
    "t4", "T4", "nvidia.com/gpu", counts=(1, 2), node_selector=T4, scale_up=ScaleUp(4, 8)
)
NAME = "cloud.google.com/gke-accelerator=nvidia-tesla-t4"
AT_MAXIMUM = CannotScaleUp((Obstacle(WhyNoNode.AT_MAXIMUM, NAME, nodes=4),))
NO_SUCH_MACHINE = CannotScaleUp((Obstacle(WhyNoNode.NO_SUCH_MACHINE, NAME),))


def _can(nodes: int, max_nodes: int, minutes: float, pool: str = NAME) -> CanScaleUp:
    return CanScaleUp(nodes, max_nodes, minutes, Source.DECLARED, pool)


def test_a_pool_below_its_maximum_can_scale_up() -> None:
    assert outlook(state(node("a"), node("b")), pod(), POOL) == _can(2, 4, 8)


def test_an_empty_pool_can_scale_up_for_any_pod() -> None:
    assert outlook(state(), pod(gpus=2, memory="900Gi"), POOL) == _can(0, 4, 8)


def test_a_pool_at_its_maximum_cannot_scale_up() -> None:
    assert outlook(state(*(node(str(i)) for i in range(4))), pod(), POOL) == AT_MAXIMUM


def test_all_pools_with_the_label_share_the_maximum() -> None:
    pools = [("ones", 1), ("ones", 1), ("twos", 2)]
    nodes = [
        node(f"{pool}-{at}", gpus=gpus, labels={**T4, "cloud.google.com/gke-nodepool": pool})
        for at, (pool, gpus) in enumerate(pools)
    ]

    assert outlook(state(*nodes), pod(gpus=2), POOL) == _can(3, 4, 8)
    assert outlook(state(*nodes, node("last")), pod(), POOL) == AT_MAXIMUM


def test_away_nodes_count_as_existing() -> None:
    away = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    nodes = [node("away", **away), *(node(str(i), unschedulable=True) for i in range(3))]

    assert outlook(state(*nodes), pod(), POOL) == AT_MAXIMUM


def test_nodes_of_other_pools_do_not_count() -> None:
    other = {"metadata": {"name": "cpu"}, "status": {"allocatable": {"pods": "110"}}}

    assert outlook(state(other, node("a")), pod(), POOL) == _can(1, 4, 8)


@pytest.mark.parametrize("accelerator", [None, Accelerator("t4", "T4", "nvidia.com/gpu")])
def test_an_accelerator_without_scale_up_cannot_scale_up(accelerator: Accelerator | None) -> None:
    assert outlook(state(), pod(), accelerator) == CannotScaleUp()


def test_a_pool_does_not_scale_up_for_a_pod_with_more_memory_than_its_nodes() -> None:
    assert outlook(state(node("a")), pod(memory="64Gi"), POOL) == NO_SUCH_MACHINE


def test_resources_of_daemon_sets_are_not_available_on_new_nodes() -> None:
    daemon = {
        "metadata": {"name": "d", "ownerReferences": [{"kind": "DaemonSet", "controller": True}]},
        "spec": {
            "nodeName": "a",
            "containers": [{"resources": {"requests": {"memory": "30Gi"}}}],
        },
    }

    assert outlook(state(node("a"), pods=(daemon,)), pod(memory="8Gi"), POOL) == NO_SUCH_MACHINE


def test_a_pool_can_scale_up_for_more_gpus_than_its_nodes_have() -> None:
    assert outlook(state(node("booting", gpus=0)), pod(gpus=2), POOL) == _can(1, 4, 8)


def test_a_pool_does_not_scale_up_for_a_pod_that_does_not_tolerate_its_taint() -> None:
    tainted = state(node("a", taints=[GPU_TAINT]))

    assert outlook(tainted, pod(), POOL) == NO_SUCH_MACHINE
    assert outlook(tainted, pod(tolerations=[TOLERATION]), POOL) == _can(1, 4, 8)


def test_temporary_taints_of_starting_nodes_do_not_count() -> None:
    starting = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}

    assert outlook(state(node("a", **starting)), pod(), POOL) == _can(1, 4, 8)


def test_a_pool_does_not_scale_up_for_a_pod_that_selects_other_nodes() -> None:
    assert outlook(state(node("a")), pod(selector={"zone": "b"}), POOL) == NO_SUCH_MACHINE


def test_node_affinity_can_define_a_pool() -> None:
    by_affinity = Accelerator(
        "t4",
        "T4",
        "nvidia.com/gpu",
        node_affinity=({"matchExpressions": ({"key": next(iter(T4)), "operator": "Exists"},)},),
        scale_up=ScaleUp(1, 8),
    )
    name = f'[{{"matchExpressions": [{{"key": "{next(iter(T4))}", "operator": "Exists"}}]}}]'

    assert outlook(state(node("a")), pod(gpus=2), by_affinity) == CannotScaleUp(
        (Obstacle(WhyNoNode.AT_MAXIMUM, name, nodes=1),)
    )
    assert outlook(state(), pod(), by_affinity) == _can(0, 1, 8, name)


def test_invalid_affinity_terms_select_no_node() -> None:
    invalid = Accelerator(
        "t4", "T4", "nvidia.com/gpu", node_affinity=("everything",), scale_up=ScaleUp(1, 8)
    )

    assert outlook(state(node("a")), pod(), invalid) == _can(0, 1, 8, '["everything"]')


def test_a_declared_pool_is_not_promised_to_more_pods_than_its_nodes_will_hold() -> None:
    cluster = Cluster(state(node("a"), pods=(plain_pod("x", 2, nodeName="a"),)))
    pool = Accelerator(
        "t4", "T4", "nvidia.com/gpu", counts=(1,), node_selector=T4, scale_up=ScaleUp(2, 8)
    )
    for name in ("b", "c"):
        assert cluster.outlook(pod(name), pool) == _can(1, 2, 8)
        cluster.state.put(pod(name))

    assert cluster.outlook(pod("d"), pool) == CannotScaleUp((Obstacle(WhyNoNode.TAKEN, NAME),))
    alone = cluster.to_come.outlook(None, Subject(pod("d")), DeclaredPool.of(pool))
    assert alone == _can(1, 2, 8)


def test_a_start_whose_pod_does_not_exist_yet_waits_too() -> None:
    cluster = Cluster(state(node("a"), pods=(plain_pod("x", 2, nodeName="a"),)))
    pool = Accelerator(
        "t4", "T4", "nvidia.com/gpu", counts=(1,), node_selector=T4, scale_up=ScaleUp(2, 8)
    )
    for name in ("b", "c"):
        cluster.reservations.take_of_new_node(("jhub", name), Subject(pod(name)))

    assert cluster.outlook(pod("d"), pool) == CannotScaleUp((Obstacle(WhyNoNode.TAKEN, NAME),))
    assert cluster.outlook(pod("c"), pool) == _can(1, 2, 8)


def test_nobody_knows_how_many_pods_the_first_node_of_an_empty_pool_holds() -> None:
    cluster = Cluster(state())
    cluster.state.put(pod("b"))
    pool = Accelerator(
        "t4", "T4", "nvidia.com/gpu", counts=(1,), node_selector=T4, scale_up=ScaleUp(1, 8)
    )

    assert cluster.outlook(pod("c"), pool) == MayScaleUp(Source.DECLARED, 8)


def test_a_young_node_without_its_gpus_is_on_its_way() -> None:
    now = datetime.now(UTC).isoformat()
    young = node("young", gpus=0, created=now)
    full = (plain_pod("x", 2, nodeName="ready"),)
    cluster = Cluster(state(node("ready"), young, pods=full))
    pool = Accelerator(
        "t4", "T4", "nvidia.com/gpu", counts=(1,), node_selector=T4, scale_up=ScaleUp(2, 8)
    )

    assert cluster.outlook(pod("b"), pool) == _can(2, 2, 8)
    cluster.state.put(pod("b", gpus=2))
    assert cluster.outlook(pod("c"), pool) == CannotScaleUp((Obstacle(WhyNoNode.TAKEN, NAME),))


def test_the_measured_time_replaces_the_declared_one() -> None:
    cluster = Cluster(state(node("a")))
    for seconds in (240, 300, 900):
        cluster.pools.usual.took(NAME, seconds)

    assert cluster.outlook(pod(gpus=2, memory="31Gi"), POOL) == _can(1, 4, 5)
