"""A node and its pods."""

from gpuspawner.scheduling.node_info import NodeInfo, PodInfo

GPU = "nvidia.com/gpu"


def low(name: str, gpus: int, priority: int = -1) -> PodInfo:
    return PodInfo(f"x/{name}", "n", {}, priority, {GPU: gpus})


def test_what_is_free_without_the_pods_of_lower_priority_is_summed_up_once_until_it_changes() -> (
    None
):
    """Hundreds of starts ask in a row, each about all nodes."""
    node = NodeInfo("n", free={GPU: 8, "pods": 110})
    for pod in (low("a", 2), low("b", 1), low("c", 4, priority=5)):
        node.add(pod)

    free = node.free_if(removed=node.below(0))
    assert free[GPU] == 4
    assert node.free_if(removed=node.below(0)) is free
    assert node.free_if(removed=node.below(9))[GPU] == 8

    old = node.below(0)
    node.discard("x/c")
    assert node.free_if(removed=old)[GPU] == 8
    node.discard("x/a")
    assert [it.key for it in node.below(0)] == ["x/b"]
    assert node.free_if(removed=node.below(0))[GPU] == 8
    assert node.free_if(added=(low("d", 3),), removed=node.below(0))[GPU] == 5
