"""A node and its pods."""

from gpuspawner.scheduling.node_info import NodeInfo, PodInfo, free_after
from tests.unit.makers.objects import judge, node, pod

GPU = "nvidia.com/gpu"


def low(name: str, gpus: int, priority: int = -1) -> PodInfo:
    return PodInfo(f"x/{name}", "n", {}, priority, {GPU: gpus})


def test_what_is_free_without_the_pods_of_lower_priority_is_summed_up_once_until_it_changes() -> (
    None
):
    """Hundreds of starts ask in a row, each about all nodes."""
    node = NodeInfo("n", free={GPU: 8, "pods": 110})
    for it in (low("a", 2), low("b", 1), low("c", 4, priority=5)):
        node.add(it)

    below = node.below(0)
    assert below.free[GPU] == 4
    assert node.below(0) is below
    assert node.below(9).free[GPU] == 8

    node.discard("x/c")
    assert node.below(0).free[GPU] == 8
    node.discard("x/a")
    assert [it.key for it in node.below(0).pods] == ["x/b"]
    assert node.below(0).free[GPU] == 8
    assert free_after(node.below(0).free, (low("d", 3),), -1)[GPU] == 5


def test_with_host_network_every_port_is_a_host_port():
    asks = pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 80}]}])
    there = pod("old", "a", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    assert not judge(asks, node(), pods=[there]).feasible
