"""Nodes that die: what the real controllers make of them and of their pods."""

from __future__ import annotations

import pytest

from localcluster import Fleet
from localcluster.client import Object
from localcluster.fleet import NodeGroup
from localcluster.losses import UNKNOWN, find_again, lose
from tests.fixtures.cluster import AddNodes
from tests.localcluster.faults import ROOM, Told, pod
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

UNREACHABLE = "node.kubernetes.io/unreachable"


@pytest.fixture(autouse=True)
def another_node(add_nodes: AddNodes) -> None:
    """Add a node besides gpu-0: the controllers taint none if all are lost."""
    add_nodes(Fleet((NodeGroup("other", 1, ROOM),)))


def on_node(made: Object, name: str = "gpu-0") -> Object:
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}
    return made


def impatient(made: Object, seconds: int = 1) -> Object:
    """Return the pod, for gpu-0, with this patience; by default it is five minutes."""
    on_node(made)
    patience = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
    made["spec"]["tolerations"] = [{**patience, "tolerationSeconds": seconds}]
    return made


def ready(told: Told) -> dict[str, str]:
    found = told.api.get("/api/v1/nodes/gpu-0")["status"]["conditions"]
    [condition] = [c for c in found if c["type"] == "Ready"]
    return {key: text for key, text in condition.items() if key in UNKNOWN}


def taints(told: Told) -> set[tuple[str, str]]:
    spec = told.api.get("/api/v1/nodes/gpu-0")["spec"]
    return {(taint["key"], taint["effect"]) for taint in spec.get("taints", [])}


def test_the_controllers_evict_the_pods_of_a_node_that_is_lost(told: Told) -> None:
    told.create(impatient(pod()))
    told.wait_for_phase("Running")
    lose(told.api, "gpu-0")

    wait_for(lambda: told.condition("DisruptionTarget"))

    assert taints(told) >= {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert told.condition("DisruptionTarget") == {
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    evicted = told.wait_for_event("TaintManagerEviction")
    assert evicted["message"] == f"Marking for deletion Pod {told.namespace}/p"
    # Nobody is there to end its containers.
    path = f"{told.path}/pods/p"
    wait_for(lambda: "deletionTimestamp" in told.api.get(path)["metadata"])
    assert told.phase() == "Running"

    find_again(told.api, "gpu-0")
    wait_for(lambda: not told.api.items(f"{told.path}/pods"))
    wait_for(lambda: ready(told)["status"] == "True" and not taints(told))


def test_a_dead_node_says_nothing_of_its_pods(told: Told) -> None:
    told.create(on_node(pod(pull_seconds="2")))
    told.wait_for_event("Pulling")
    told.annotate_node(silent="true")
    # When this pod runs, the pull on the dead node has long ended.
    told.create(on_node(pod("later", pull_seconds="2.5"), "other-0"))
    told.wait_for_phase("Running", "later")

    assert told.phase() == "Pending"
    assert [event["reason"] for event in told.events()] == ["Pulling"]
    find_again(told.api, "gpu-0")
    told.wait_for_phase("Running")


def test_a_kubelet_that_falls_silent_is_lost_after_its_time(told: Told) -> None:
    told.create(impatient(pod(), seconds=600))
    told.wait_for_phase("Running")
    told.annotate_node(silent="true")

    # The controller waits 50 s.
    wait_for(lambda: ready(told) == UNKNOWN, timeout=150)

    wait_for(lambda: told.condition("Ready")["status"] == "False")
    not_ready = told.wait_for_event("NodeNotReady")
    assert (not_ready["type"], not_ready["message"]) == ("Warning", "Node is not ready")
    assert told.phase() == "Running"
