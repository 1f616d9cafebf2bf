"""What a kubelet says when its node runs short of something and it evicts a pod."""

from __future__ import annotations

import pytest

from localcluster.agent.eviction import end, message
from localcluster.agent.pressure import DISK, MEMORY, Shortage, shortages
from localcluster.client import Object
from localcluster.nodes import LOW_DISK, LOW_MEMORY


def pod(**requests: str) -> Object:
    return {"spec": {"containers": [{"name": "notebook", "resources": {"requests": requests}}]}}


@pytest.mark.parametrize(
    ("shortage", "resource", "threshold"),
    [
        (Shortage(MEMORY, "60Mi"), "memory", "100Mi"),
        (Shortage(DISK, "60Mi"), "ephemeral-storage", "10000000000"),
    ],
)
def test_the_message_names_the_containers_that_use_more_than_they_asked_for(
    shortage: Shortage, resource: str, threshold: str
) -> None:
    low = (
        f"The node was low on resource: {resource}. "
        f"Threshold quantity: {threshold}, available: 60Mi. "
    )
    asked = pod(**{resource: "1Gi"})

    assert message(asked, shortage, "3Gi", ["notebook"]) == (
        f"{low}Container notebook was using 3Gi, request is 1Gi, "
        f"has larger consumption of {resource}. "
    )
    assert message(asked, shortage, "1Gi", ["notebook"]) == low
    assert message(asked, shortage, "3Gi", []) == low
    assert message(asked, shortage, "", ["notebook"]) == low


def test_an_evicted_pod_has_failed_and_says_so_in_a_condition() -> None:
    told = end("low")

    assert (told["phase"], told["reason"], told["message"]) == ("Failed", "Evicted", "low")
    del told["condition"]["lastTransitionTime"]
    assert told["condition"] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": "low",
    }


def test_a_node_s_annotations_say_what_it_is_short_of_memory_first() -> None:
    def short(**annotations: str) -> tuple[Shortage, ...]:
        return shortages({"metadata": {"annotations": annotations}})

    both = {LOW_DISK: "800Mi", LOW_MEMORY: "60Mi"}

    assert short(**both) == (Shortage(MEMORY, "60Mi"), Shortage(DISK, "800Mi"))
    assert short() == ()
