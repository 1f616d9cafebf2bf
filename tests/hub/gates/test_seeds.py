"""The cases that this project started from: users who need GPUs, and clusters with too few.

For each start, the real scheduler binds the pod. For each refusal, the test creates the refused pod
itself, and the same scheduler leaves it Pending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
from tests.hub.pods import asking_for
from tests.hub.running import RunningHub
from tests.waiting import wait_for

GPU = "nvidia.com/gpu"
OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"

# Two of the clusters have a cloud's labels, but no pool of theirs grows.
OFFERS = """
c.GPUSpawner.autoscaling = "none"
GKE = "cloud.google.com/gke-accelerator"
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
c.GPUSpawner.accelerators = {
    "workstation": {"display_name": "GPU", "node_affinity": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-0"]}]}]},
    "k80": {"display_name": "Tesla K80", "counts": [1, 2], "tolerations": TOLERATED,
            "node_selector": {GKE: "nvidia-tesla-k80"}},
    "p100": {"display_name": "Tesla P100", "tolerations": TOLERATED,
             "node_selector": {GKE: "nvidia-tesla-p100"}},
    "p100-untolerated": {"display_name": "Tesla P100", "node_selector": {GKE: "nvidia-tesla-p100"}},
    "v100": {"display_name": "Tesla V100", "counts": [1, 2, 3, 4],
             "node_selector": {"node.kubernetes.io/instance-type": "p3.8xlarge"}},
    "gtx": {"display_name": "GTX 1080", "resource": "alpha.kubernetes.io/nvidia-gpu",
            "node_selector": {"accelerator": "nvidia-gtx-1080"},
            "volumes": [{"name": "nvidia", "hostPath": {"path": "/usr/lib/nvidia-384"}}],
            "volume_mounts": [{"name": "nvidia", "mountPath": "/usr/local/nvidia"}]},
}
"""


Seed = Callable[[str], RunningHub]


@pytest.fixture
def on(kept_hub: LendHub, add_nodes: AddNodes) -> Seed:
    """Borrow a hub on the nodes of a shipped fleet."""

    def borrow(fleet: str) -> RunningHub:
        add_nodes(fleet)
        return kept_hub(OFFERS)

    return borrow


def start(hub: RunningHub, user: str, accelerator: str, gpus: int = 1) -> dict[str, Any]:
    """Start *user*'s server, wait until it is ready, and return its pod."""
    answer = hub.start(user, {"accelerator": accelerator, "gpus": gpus})
    assert answer.status_code in {201, 202}, answer.text
    hub.until_ready(user)
    return hub.pods.bound(user)


def refused(hub: RunningHub, user: str, accelerator: str, gpus: int = 1) -> str:
    """Return the message that refuses *user* by REST; check the form, and that there is no pod."""
    answer = hub.start(user, {"accelerator": accelerator, "gpus": gpus})
    assert answer.status_code == 409, answer.text
    message: str = answer.json()["message"]
    page = hub.person(user).submit({"accelerator": accelerator, f"gpus--{accelerator}": str(gpus)})
    assert page.status == 409
    assert message in page.text
    assert f"jupyter-{user}" not in hub.pods.names()
    return message


def limits(pod: dict[str, Any]) -> dict[str, str]:
    """The server's limits; devices have the same requests."""
    (server,) = pod["spec"]["containers"]
    resources: dict[str, dict[str, str]] = server["resources"]
    assert resources["limits"].items() <= resources["requests"].items()
    return resources["limits"]


def is_pending(hub: RunningHub, spec: dict[str, Any], reason: str) -> bool:
    """Whether the scheduler leaves a pod with this spec Pending, for this reason."""
    node, message = hub.pods.outcome(spec)
    return not node and reason in message


def test_of_two_users_for_one_gpu_one_starts_and_one_is_refused(on: Seed) -> None:
    hub = on("single")
    running = start(hub, "alice", "workstation")

    message = refused(hub, "bob", "workstation")

    assert limits(running)[GPU] == "1"
    assert running["spec"]["nodeName"] == "gpu-0"
    assert "in use" in message
    assert "alice" not in message
    assert hub.pods.names() == {"jupyter-alice"}
    assert is_pending(hub, asking_for(running, GPU, 1), f"Insufficient {GPU}")

    hub.stop("alice")
    assert limits(start(hub, "bob", "workstation"))[GPU] == "1"


def test_gke_models_are_chosen_by_node_selector(on: Seed) -> None:
    hub = on("gke")

    both_k80 = start(hub, "alice", "k80", 2)
    p100 = start(hub, "bob", "p100")

    assert (both_k80["spec"]["nodeName"], limits(both_k80)[GPU]) == ("k80-0", "2")
    assert (p100["spec"]["nodeName"], limits(p100)[GPU]) == ("p100-0", "1")
    assert "in use" in refused(hub, "carol", "k80")
    assert "in use" in refused(hub, "carol", "p100")
    assert is_pending(hub, asking_for(both_k80, GPU, 1), f"1 Insufficient {GPU}")
    assert is_pending(hub, asking_for(p100, GPU, 1), f"1 Insufficient {GPU}")


def test_a_tainted_gpu_node_needs_the_toleration(on: Seed) -> None:
    hub = on("gke")

    refused(hub, "alice", "p100-untolerated")
    tolerated = start(hub, "alice", "p100")

    assert tolerated["spec"]["nodeName"] == "p100-0"
    hub.stop("alice")
    wait_for(lambda: not hub.pods.all())
    untolerated = asking_for(tolerated, GPU, 1)
    untolerated["tolerations"] = [t for t in untolerated["tolerations"] if t["key"] != GPU]
    assert is_pending(hub, untolerated, "untolerated taint")


def test_four_v100_are_shared_and_not_overbooked(on: Seed) -> None:
    hub = on("eks")

    one = start(hub, "alice", "v100", 1)
    three = start(hub, "bob", "v100", 3)

    assert {one["spec"]["nodeName"], three["spec"]["nodeName"]} == {"p3-8xlarge-0"}
    refused(hub, "carol", "v100", 1)
    assert is_pending(hub, asking_for(one, GPU, 1), f"Insufficient {GPU}")
    hub.stop("alice")
    wait_for(lambda: "jupyter-alice" not in hub.pods.names())
    assert "1" in refused(hub, "carol", "v100", 2)
    assert is_pending(hub, asking_for(one, GPU, 2), f"Insufficient {GPU}")
    start(hub, "carol", "v100", 1)


def test_an_old_device_name_works_with_its_driver_s_folder(on: Seed) -> None:
    hub = on("old-device")

    running = start(hub, "alice", "gtx")

    assert running["spec"]["nodeName"] == "gtx-0"
    assert limits(running)[OLD_GPU] == "1"
    assert {"name": "nvidia", "hostPath": {"path": "/usr/lib/nvidia-384", "type": ""}} in running[
        "spec"
    ]["volumes"]
    mounts = running["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "nvidia", "mountPath": "/usr/local/nvidia"} in mounts
    assert "in use" in refused(hub, "bob", "gtx")
    assert is_pending(hub, asking_for(running, OLD_GPU, 1), f"Insufficient {OLD_GPU}")


def test_a_server_without_a_gpu_sees_none(on: Seed, cluster: LocalCluster) -> None:
    hub = on("single")

    assert hub.start("alice", {"accelerator": None}).status_code in {201, 202}
    plain = hub.pods.bound("alice")

    server = plain["spec"]["containers"][0]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in server["env"]
    assert GPU not in server["resources"].get("limits", {})
    assert cluster.api.get("/api/v1/nodes/gpu-0")["status"]["allocatable"][GPU] == "1"
    hub.until_ready("alice")
