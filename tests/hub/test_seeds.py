"""What this project began with: people who need GPUs, and clusters that have too few.

For each yes the real scheduler has bound the pod; for each no, the pod that was not made is made
by hand, and the same scheduler leaves it Pending.
"""

from __future__ import annotations

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.pods import Pods, asking_for
from tests.hub.running import RunningHub

GPU = "nvidia.com/gpu"


@pytest.fixture
def pods(cluster: LocalCluster, namespace: str) -> Pods:
    return Pods(cluster, namespace)


def refused(hub: RunningHub, user: str, options: dict[str, object]) -> str:
    """The message with which *user*'s start is refused by REST and, the same, on the form."""
    answer = hub.start(user, options)
    assert answer.status_code == 409, answer.text
    form = {name: "" if value is None else str(value) for name, value in options.items()}
    page = hub.person(user).submit(form)
    assert page.status == 409
    message: str = answer.json()["message"]
    assert f"Error: {message}" in page.text
    return message


def started(hub: RunningHub, user: str, options: dict[str, object]) -> None:
    assert hub.start(user, options).status_code in {201, 202}
    hub.until_ready(user)


def limits(pod: dict[str, object]) -> dict[str, str]:
    (server,) = pod["spec"]["containers"]  # type: ignore[index]
    assert server["resources"]["limits"].items() <= server["resources"]["requests"].items()
    found: dict[str, str] = server["resources"]["limits"]
    return found


def test_one_gpu_and_two_people_one_runs_and_one_is_told(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, pods: Pods
) -> None:
    add_nodes("single")

    with start_gpu_hub(WORKSTATION) as hub:
        started(hub, "alice", {"gpus": 1})
        message = refused(hub, "bob", {"gpus": 1})

        running = pods.bound("alice")
        assert limits(running)[GPU] == "1"
        assert "in use" in message
        assert "alice" not in message
        assert pods.names() == {"jupyter-alice"}
        node, why = pods.outcome(asking_for(running, GPU, 1))
        assert not node
        assert f"Insufficient {GPU}" in why

        hub.stop("alice")
        started(hub, "bob", {"gpus": 1})
        assert limits(pods.bound("bob"))[GPU] == "1"


WORKSTATION = """
c.GPUSpawner.accelerators = {"gpu": {
    "display_name": "GPU", "counts": [1], "node_affinity": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}}
"""
