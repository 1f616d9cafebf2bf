"""Pools that can grow, as judged by their existing nodes and by the administrator's settings."""

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers import Accelerator, ScaleUp
from gpuspawner.scaling.declared import CanScaleUp, can_scale_up
from gpuspawner.scheduling.state import ClusterState

T4 = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
POOL = Accelerator(
    "t4", "T4", "nvidia.com/gpu", counts=(1, 2), node_selector=T4, scale_up=ScaleUp(4, 8)
)


def node(name: str, gpus: int = 2, memory: str = "32Gi", **spec: object) -> dict[str, object]:
    amounts = {"cpu": "8", "memory": memory, "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "labels": T4},
        "spec": spec,
        "status": {"allocatable": amounts},
    }


def pod(gpus: int = 1, memory: str = "8Gi", selector: dict[str, str] = T4, **spec: object) -> Pod:
    requests = {"nvidia.com/gpu": str(gpus), "memory": memory}
    container = {"name": "notebook", "resources": {"requests": requests, "limits": requests}}
    spec = {"containers": [container], "nodeSelector": selector, **spec}
    made = convert("Pod", {"metadata": {"name": "a", "namespace": "jhub"}, "spec": spec})
    assert isinstance(made, Pod)
    return made


def state(*nodes: dict[str, object], pods: tuple[dict[str, object], ...] = ()) -> ClusterState:
    return ClusterState.from_objects(nodes=nodes, pods=pods)


def test_a_pool_below_its_maximum_can_scale_up() -> None:
    assert can_scale_up(state(node("a"), node("b")), POOL, pod()) == CanScaleUp(2, 4, 8)


def test_an_empty_pool_can_scale_up_for_any_pod() -> None:
    assert can_scale_up(state(), POOL, pod(gpus=2, memory="900Gi")) == CanScaleUp(0, 4, 8)


def test_a_pool_at_its_maximum_cannot_scale_up() -> None:
    assert can_scale_up(state(*(node(str(i)) for i in range(4))), POOL, pod()) is None


def test_away_nodes_count_as_existing() -> None:
    away = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    nodes = [node("away", **away), *(node(str(i), unschedulable=True) for i in range(3))]

    assert can_scale_up(state(*nodes), POOL, pod()) is None


def test_nodes_of_other_pools_do_not_count() -> None:
    other = {"metadata": {"name": "cpu"}, "status": {"allocatable": {"pods": "110"}}}

    assert can_scale_up(state(other, node("a")), POOL, pod()) == CanScaleUp(1, 4, 8)


@pytest.mark.parametrize("accelerator", [None, Accelerator("t4", "T4", "nvidia.com/gpu")])
def test_an_accelerator_without_scale_up_cannot_scale_up(accelerator: Accelerator | None) -> None:
    assert can_scale_up(state(), accelerator, pod()) is None


def test_a_pool_does_not_scale_up_for_a_pod_with_more_memory_than_its_nodes() -> None:
    assert can_scale_up(state(node("a")), POOL, pod(memory="64Gi")) is None


def test_resources_of_daemon_sets_are_not_available_on_new_nodes() -> None:
    daemon = {
        "metadata": {"name": "d", "ownerReferences": [{"kind": "DaemonSet", "controller": True}]},
        "spec": {
            "nodeName": "a",
            "containers": [{"resources": {"requests": {"memory": "30Gi"}}}],
        },
    }

    assert can_scale_up(state(node("a"), pods=(daemon,)), POOL, pod(memory="8Gi")) is None


def test_a_pool_can_scale_up_for_more_gpus_than_its_nodes_have() -> None:
    assert can_scale_up(state(node("booting", gpus=0)), POOL, pod(gpus=2)) == CanScaleUp(1, 4, 8)


def test_a_pool_does_not_scale_up_for_a_pod_that_does_not_tolerate_its_taint() -> None:
    tainted = state(node("a", taints=[GPU_TAINT]))

    assert can_scale_up(tainted, POOL, pod()) is None
    assert can_scale_up(tainted, POOL, pod(tolerations=[TOLERATION])) == CanScaleUp(1, 4, 8)


def test_temporary_taints_of_starting_nodes_do_not_count() -> None:
    starting = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}

    assert can_scale_up(state(node("a", **starting)), POOL, pod()) == CanScaleUp(1, 4, 8)


def test_a_pool_does_not_scale_up_for_a_pod_that_selects_other_nodes() -> None:
    assert can_scale_up(state(node("a")), POOL, pod(selector={"zone": "b"})) is None


def test_node_affinity_can_define_a_pool() -> None:
    by_affinity = Accelerator(
        "t4",
        "T4",
        "nvidia.com/gpu",
        node_affinity=({"matchExpressions": ({"key": next(iter(T4)), "operator": "Exists"},)},),
        scale_up=ScaleUp(1, 8),
    )

    assert can_scale_up(state(node("a")), by_affinity, pod()) is None
    assert can_scale_up(state(), by_affinity, pod()) == CanScaleUp(0, 1, 8)


def test_invalid_affinity_terms_select_no_node() -> None:
    invalid = Accelerator(
        "t4", "T4", "nvidia.com/gpu", node_affinity=("everything",), scale_up=ScaleUp(1, 8)
    )

    assert can_scale_up(state(node("a")), invalid, pod()) == CanScaleUp(0, 1, 8)
