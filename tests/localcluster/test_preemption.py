"""Pods that must go for one of a higher priority: what the real scheduler tells of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.localcluster.faults import Told, pod, with_gpus
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")


@pytest.fixture
def urgent(told: Told) -> Iterator[str]:
    """The name of a priority class above the others."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    name = f"urgent-{told.namespace}"
    told.api.create(classes, {"metadata": {"name": name}, "value": 1000})
    yield name
    told.api.delete(f"{classes}/{name}")


def test_a_pod_is_ended_for_one_of_a_higher_priority(told: Told, urgent: str) -> None:
    victim, other = with_gpus(pod("victim"), 2), with_gpus(pod("urgent"), 1)
    # It keeps the pod until the test has read it.
    victim["metadata"]["finalizers"] = ["example.org/read"]
    other["spec"]["priorityClassName"] = urgent
    told.create(victim)
    told.wait_for_phase("Running", "victim")
    uid = told.create(other)["metadata"]["uid"]

    told.wait_for_phase("Running", "urgent")

    assert told.condition("DisruptionTarget", "victim") == {
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
    }
    path = f"{told.path}/pods/victim"
    query = "fieldSelector=involvedObject.name=victim,reason=Preempted"
    [event] = wait_for(lambda: told.api.items(f"{told.path}/events?{query}"))
    assert event["message"] == f"Preempted by pod {uid} on node gpu-0"
    told.api.patch(path, {"metadata": {"finalizers": None}})
