"""Whether a node's kubelet admits a pod, and what it says if not."""

from __future__ import annotations

import pytest

from localcluster.agent.admission import Rejection, rejection
from localcluster.agent.pressure import DISK, MEMORY
from localcluster.client import Object
from localcluster.nodes import LOST_DEVICES
from tests.localcluster.faults import ROOM

GPU = "nvidia.com/gpu"


def node(lost_gpus: int = 0) -> Object:
    annotations = {LOST_DEVICES: f'{{"{GPU}": {lost_gpus}}}'}
    labels = {"kubernetes.io/hostname": "gpu-0"}
    metadata = {"name": "gpu-0", "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {}, "status": {"allocatable": ROOM}}


def pod(gpus: int = 0, cpu: str = "0", qos: str = "Burstable", **spec: object) -> Object:
    amounts = {GPU: str(gpus), "cpu": cpu}
    container = {"name": "notebook", "image": "lab:1", "resources": {"requests": amounts}}
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [container], **spec},
        "status": {"qosClass": qos},
    }


def no_device(said: str) -> Rejection:
    message = f"Allocate failed due to {said}, which is unexpected"
    return Rejection("UnexpectedAdmissionError", message)


def test_a_gpu_that_went_after_the_scheduler_looked_fails_the_pod() -> None:
    assert rejection(pod(gpus=2), node(lost_gpus=1), [], "", ()) == no_device(
        f"requested number of devices unavailable for {GPU}. Requested: 2, Available: 1"
    )


def test_without_a_healthy_gpu_none_is_allocated() -> None:
    assert rejection(pod(gpus=1), node(lost_gpus=2), [], "", ()) == no_device(
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            "unavailable",
            f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0",
        ),
        ("unhealthy", f"no healthy devices present; cannot allocate unhealthy devices {GPU}"),
        ("unregistered", f"cannot allocate unregistered device {GPU}"),
    ],
)
def test_a_pod_can_ask_to_be_refused_its_gpu(error: str, said: str) -> None:
    assert rejection(pod(gpus=1), node(), [], error, ()) == no_device(said)
    assert rejection(pod(), node(), [], error, ()) is None


def test_a_node_that_is_full_refuses_what_the_scheduler_was_not_asked_about() -> None:
    asked = pod(cpu="4")

    assert rejection(asked, node(), [pod(cpu="6")], "", ()) == Rejection(
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000",
    )
    assert rejection(asked, node(), [pod(cpu="4")], "", ()) is None


def test_a_node_whose_labels_do_not_match_refuses_the_pod() -> None:
    asked = pod(nodeSelector={"kubernetes.io/hostname": "other-0"})

    assert rejection(asked, node(), [], "", ()) == Rejection(
        "NodeAffinity",
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    )


def test_a_node_that_is_low_on_memory_admits_only_pods_with_requests() -> None:
    low = (MEMORY.condition,)

    assert rejection(pod(qos="BestEffort"), node(), [], "", low) == Rejection(
        "Evicted", "The node had condition: [MemoryPressure]. "
    )
    assert rejection(pod(), node(), [], "", low) is None


def test_a_node_without_disk_admits_only_pods_that_the_cluster_needs() -> None:
    low = (MEMORY.condition, DISK.condition)

    assert rejection(pod(), node(), [], "", low) == Rejection(
        "Evicted", "The node had condition: [MemoryPressure DiskPressure]. "
    )
    assert rejection(pod(priority=2_000_001_000), node(), [], "", low) is None
