"""Pods that the scheduler binds and the node's kubelet refuses: what is told of them."""

from __future__ import annotations

import pytest

from localcluster.client import Object
from tests.localcluster.faults import Told, pod, with_gpus, with_requests
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

GPU = "nvidia.com/gpu"


def on_node(made: Object, name: str = "gpu-0") -> Object:
    """Return the pod bound to a node without being asked by the scheduler."""
    made["spec"]["nodeName"] = name
    return made


def test_a_gpu_that_went_after_the_scheduler_looked_fails_the_pod(told: Told) -> None:
    told.annotate_node(lost_devices=f'{{"{GPU}": 1}}')
    told.create(with_gpus(pod(), 2))

    status = told.wait_for_phase("Failed")

    message = (
        f"Allocate failed due to requested number of devices unavailable for {GPU}. "
        "Requested: 2, Available: 1, which is unexpected"
    )
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == f"Pod was rejected: {message}"
    assert "containerStatuses" not in status
    assert "podIP" not in status
    assert told.texts() == [f"UnexpectedAdmissionError: {message}"]
    [event] = told.events()
    assert (event["type"], event["source"]["host"]) == ("Warning", "gpu-0")


def test_a_gpu_that_is_sick_can_no_longer_be_allocated(told: Told) -> None:
    def amounts() -> tuple[str, str]:
        status = told.api.get("/api/v1/nodes/gpu-0")["status"]
        return status["allocatable"][GPU], status["capacity"][GPU]

    told.annotate_node(unhealthy_devices=f'{{"{GPU}": 1}}')
    wait_for(lambda: amounts() == ("1", "2"))

    told.annotate_node(unhealthy_devices=None)
    wait_for(lambda: amounts() == ("2", "2"))


def test_a_node_that_is_full_refuses_what_the_scheduler_was_not_asked_about(told: Told) -> None:
    told.create(on_node(with_requests(pod("first"), cpu="6")))
    told.wait_for_phase("Running", "first")
    told.create(on_node(with_requests(pod(), cpu="4")))

    status = told.wait_for_phase("Failed")

    message = "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000"
    assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {message}")
    assert told.texts() == [f"OutOfcpu: {message}"]


def test_room_that_is_free_again_is_given_to_the_next(told: Told) -> None:
    told.create(on_node(with_requests(pod("first"), cpu="6")))
    told.wait_for_phase("Running", "first")
    told.delete("first")
    told.create(on_node(with_requests(pod(), cpu="6")))

    told.wait_for_phase("Running")
