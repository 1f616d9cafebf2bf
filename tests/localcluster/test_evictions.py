"""Pods that a kubelet evicts because their node is short of something: what is told of them."""

from __future__ import annotations

import pytest

from localcluster.client import Object
from tests.localcluster.faults import Told, pod, with_requests
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

LOW = "The node was low on resource: "


def conditions(told: Told) -> dict[str, dict[str, str]]:
    found = told.api.get("/api/v1/nodes/gpu-0")["status"]["conditions"]
    return {condition["type"]: condition for condition in found}


def bound(made: Object) -> Object:
    made["spec"]["nodeName"] = "gpu-0"
    return made


@pytest.mark.parametrize(
    ("annotation", "left", "resource", "threshold"),
    [
        (
            "low_memory",
            "60Mi",
            "memory",
            "100Mi",
        ),
        (
            "low_disk",
            "800Mi",
            "ephemeral-storage",
            "10000000000",
        ),
    ],
)
def test_a_node_that_runs_short_evicts_its_pods(
    told: Told, annotation: str, left: str, resource: str, threshold: str
) -> None:
    # The node declares no disk, so only a pod that is bound already may ask for some.
    told.create(bound(with_requests(pod(uses="3Gi"), **{resource: "1Gi"})))
    told.wait_for_phase("Running")
    told.annotate_node(**{annotation: left})

    status = told.wait_for_phase("Failed")

    message = (
        f"{LOW}{resource}. Threshold quantity: {threshold}, available: {left}. Container notebook "
        f"was using 3Gi, request is 1Gi, has larger consumption of {resource}. "
    )
    assert (status["reason"], status["message"]) == ("Evicted", message)
    assert told.condition("DisruptionTarget") == {
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": message,
    }
    assert "terminated" in told.container()["state"]
    evicted, killing = told.events()[-2:]
    assert (evicted["reason"], evicted["message"]) == ("Evicted", message)
    assert evicted["type"] == "Warning"
    assert killing["message"] == "Stopping container notebook"


@pytest.mark.parametrize(
    ("annotation", "kind", "low", "well"),
    [
        (
            "low_memory",
            "MemoryPressure",
            ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
            ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ),
        (
            "low_disk",
            "DiskPressure",
            ("KubeletHasDiskPressure", "kubelet has disk pressure"),
            ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ),
    ],
)
def test_the_node_says_what_it_is_short_of_and_when_it_no_longer_is(
    told: Told, annotation: str, kind: str, low: tuple[str, str], well: tuple[str, str]
) -> None:
    def said() -> tuple[str, tuple[str, str]]:
        condition = conditions(told)[kind]
        return condition["status"], (condition["reason"], condition["message"])

    assert kind not in conditions(told)
    told.annotate_node(**{annotation: "60Mi"})
    wait_for(lambda: kind in conditions(told))
    assert said() == ("True", low)

    told.annotate_node(**{annotation: None})
    wait_for(lambda: conditions(told)[kind]["status"] == "False")
    assert said() == ("False", well)


def test_a_node_that_is_low_on_memory_admits_only_pods_with_requests(told: Told) -> None:
    told.annotate_node(low_memory="60Mi")
    wait_for(lambda: "MemoryPressure" in conditions(told))
    told.create(bound(pod()))
    told.create(bound(with_requests(pod("asking"), memory="1Gi")))

    message = "The node had condition: [MemoryPressure]. "
    status = told.wait_for_phase("Failed")
    assert (status["reason"], status["message"]) == ("Evicted", f"Pod was rejected: {message}")
    # It was admitted, and then evicted like all others.
    assert told.wait_for_phase("Failed", "asking")["message"].startswith(f"{LOW}memory. ")


def test_a_pod_that_the_cluster_needs_is_never_evicted(told: Told) -> None:
    critical = pod("critical")
    critical["spec"]["priorityClassName"] = "system-node-critical"
    told.create(critical)
    told.create(pod())
    told.wait_for_phase("Running", "critical")
    told.wait_for_phase("Running")
    told.annotate_node(low_memory="60Mi")

    told.wait_for_phase("Failed")

    assert told.phase("critical") == "Running"
