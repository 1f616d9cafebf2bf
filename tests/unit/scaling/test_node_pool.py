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
    Plain,
    declared,
    node,
    outlook,
    plain_pod,
    pod,
    state,
)

POOL = declared(4)
NAME = "cloud.google.com/gke-accelerator=nvidia-tesla-t4"
AT_MAXIMUM = CannotScaleUp((Obstacle(WhyNoNode.AT_MAXIMUM, NAME, nodes=4),))
NO_SUCH_MACHINE = CannotScaleUp((Obstacle(WhyNoNode.NO_SUCH_MACHINE, NAME),))
TAKEN = CannotScaleUp((Obstacle(WhyNoNode.TAKEN, NAME),))
STARTS = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
DAEMON = {
    "metadata": {"name": "d", "ownerReferences": [{"kind": "DaemonSet", "controller": True}]},
    "spec": {"nodeName": "a", "containers": [{"resources": {"requests": {"memory": "30Gi"}}}]},
}
OF_OTHERS = {"metadata": {"name": "cpu"}, "status": {"allocatable": {"pods": "110"}}}


def _can(nodes: int, max_nodes: int = 4, minutes: float = 8, pool: str = NAME) -> CanScaleUp:
    return CanScaleUp(nodes, max_nodes, minutes, Source.DECLARED, pool)


def in_pool(name: str, pool: str, gpus: int) -> Plain:
    return node(name, gpus, labels={**T4, "cloud.google.com/gke-nodepool": pool})


TWO_POOLS = [in_pool("a", "ones", 1), in_pool("b", "ones", 1), in_pool("c", "twos", 2)]

IF = {
    "it is below its maximum": ([node("a"), node("b")], pod(), _can(2)),
    "it is empty, for any pod": ([], pod(gpus=2, memory="900Gi"), _can(0)),
    "it is at its maximum": ([node(it) for it in "abcd"], pod(), AT_MAXIMUM),
    "it is at its maximum with a node that is away": (
        [node("away", **STARTS), *(node(it, unschedulable=True) for it in "abc")], pod(), AT_MAXIMUM
    ),
    "it is two pools below their common maximum": (TWO_POOLS, pod(gpus=2), _can(3)),
    "it is two pools at their common maximum": ([*TWO_POOLS, node("last")], pod(), AT_MAXIMUM),
    "there are nodes of others": ([OF_OTHERS, node("a")], pod(), _can(1)),
    "the pod needs more memory than its nodes have": (
        [node("a")], pod(memory="64Gi"), NO_SUCH_MACHINE
    ),
    "the pod needs more GPUs than its nodes have": (
        [node("booting", gpus=0)], pod(gpus=2), _can(1)
    ),
    "the pod doesn't tolerate its taint": (
        [node("a", taints=[GPU_TAINT])], pod(), NO_SUCH_MACHINE
    ),
    "the pod tolerates its taint": (
        [node("a", taints=[GPU_TAINT])], pod(tolerations=[TOLERATION]), _can(1)
    ),
    "its node has a taint while it starts": ([node("a", **STARTS)], pod(), _can(1)),
    "the pod selects other nodes": ([node("a")], pod(selector={"zone": "b"}), NO_SUCH_MACHINE),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "asked", "answer"), IF.values(), ids=IF)
def test_what_a_pool_can_do_for_a_pod_if(nodes, asked, answer) -> None:
    assert outlook(state(*nodes), asked, POOL) == answer


@pytest.mark.parametrize("accelerator", [None, Accelerator("t4", "T4", "nvidia.com/gpu")])
def test_an_accelerator_without_scale_up_cannot_scale_up(accelerator: Accelerator | None) -> None:
    assert outlook(state(), pod(), accelerator) == CannotScaleUp()


def test_resources_of_daemon_sets_are_not_available_on_new_nodes() -> None:
    assert outlook(state(node("a"), pods=(DAEMON,)), pod(memory="8Gi"), POOL) == NO_SUCH_MACHINE


def by_affinity(*terms: object) -> Accelerator:
    return Accelerator("t4", "T4", "nvidia.com/gpu", node_affinity=terms, scale_up=ScaleUp(1, 8))


def test_node_affinity_can_define_a_pool() -> None:
    key = next(iter(T4))
    pool = by_affinity({"matchExpressions": ({"key": key, "operator": "Exists"},)})
    name = f'[{{"matchExpressions": [{{"key": "{key}", "operator": "Exists"}}]}}]'

    assert outlook(state(node("a")), pod(gpus=2), pool) == CannotScaleUp(
        (Obstacle(WhyNoNode.AT_MAXIMUM, name, nodes=1),)
    )
    assert outlook(state(), pod(), pool) == _can(0, 1, pool=name)


def test_invalid_affinity_terms_select_no_node() -> None:
    found = outlook(state(node("a")), pod(), by_affinity("everything"))

    assert found == _can(0, 1, pool='["everything"]')


def full_pool(*more: Plain) -> Cluster:
    """A pool that may add one node to those that there are; on one of them is no room."""
    return Cluster(state(node("a"), *more, pods=(plain_pod("x", 2, nodeName="a"),)))


def test_a_declared_pool_is_not_promised_to_more_pods_than_its_nodes_will_hold() -> None:
    cluster, pool = full_pool(), declared(2)
    for name in ("b", "c"):
        assert cluster.outlook(pod(name), pool) == _can(1, 2)
        cluster.state.put(pod(name))

    assert cluster.outlook(pod("d"), pool) == TAKEN
    alone = cluster.to_come.outlook(None, Subject(pod("d")), DeclaredPool.of(pool))
    assert alone == _can(1, 2)


def test_a_start_whose_pod_does_not_exist_yet_waits_too() -> None:
    cluster, pool = full_pool(), declared(2)
    for name in ("b", "c"):
        cluster.reservations.take_of_new_node(("jhub", name), Subject(pod(name)))

    assert cluster.outlook(pod("d"), pool) == TAKEN
    assert cluster.outlook(pod("c"), pool) == _can(1, 2)


def test_nobody_knows_how_many_pods_the_first_node_of_an_empty_pool_holds() -> None:
    cluster = Cluster(state())
    cluster.state.put(pod("b"))

    assert cluster.outlook(pod("c"), declared(1)) == MayScaleUp(Source.DECLARED, 8)


def test_a_young_node_without_its_gpus_is_on_its_way() -> None:
    cluster = full_pool(node("young", gpus=0, created=datetime.now(UTC).isoformat()))

    assert cluster.outlook(pod("b"), declared(2)) == _can(2, 2)
    cluster.state.put(pod("b", gpus=2))
    assert cluster.outlook(pod("c"), declared(2)) == TAKEN


def test_the_measured_time_replaces_the_declared_one() -> None:
    cluster = Cluster(state(node("a")))
    for seconds in (240, 300, 900):
        cluster.pools.usual.took(NAME, seconds)

    assert cluster.outlook(pod(gpus=2, memory="31Gi"), POOL) == _can(1, minutes=5)
