"""However a start ends, the next user gets the GPU, and no two users get it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from localcluster import Fleet, NodeGroup
from localcluster.client import unless_gone
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

# The pods of users named "slow" take long to run, and the starts of "impatient" users time out
# after three seconds. For "unlucky" users, another pod is bound between the last gate and theirs.
PEOPLE = """
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 1}
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "node_selector": {"gpu": "reservations"}}}

def hook(spawner):
    if spawner.user.name.startswith("impatient"):
        spawner.start_timeout = spawner.preparing_timeout = 3
c.Spawner.pre_spawn_hook = hook

def slow(spawner, pod):
    if "slow" in spawner.user.name:
        pod.metadata.annotations["localcluster/start-after"] = "120"
    return pod
c.KubeSpawner.modify_pod_hook = slow

from gpuspawner.start.sending import Sending
send = Sending.send
async def send_late(self, key, pod, request_timeout):
    spawner = self._spawner
    if spawner.user.name == "unlucky":
        asked = {"limits": {"nvidia.com/gpu": "1"}}
        spec = {"containers": [{"name": "x", "image": "x", "resources": asked}]}
        spec["nodeName"] = "reservations-0"
        other = {"metadata": {"name": "other"}, "spec": spec}
        await spawner.api.create_namespaced_pod(spawner.namespace, other)
    return await send(self, key, pod, request_timeout)
Sending.send = send_late
"""


PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with one GPU."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}
    add_nodes(Fleet((NodeGroup("reservations", 1, amounts, labels={"gpu": "reservations"}),)))
    return kept_hub(PEOPLE)


def one_more_starts(hub: RunningHub) -> None:
    """Check that the GPU is free: the next user gets it, and the one after that doesn't.

    The hub knows that a pod has gone as soon as the watch says so.
    """
    wait_for(lambda: hub.start("next").status_code in {201, 202})
    hub.until_ready("next")
    assert hub.start("last").status_code in {202, 409}
    hub.events_end("last")
    assert hub.pods.names() == {"jupyter-next"}


@pytest.mark.each_hub
def test_a_start_that_its_owner_stops_frees_the_gpu(hub: RunningHub) -> None:
    hub.start("slow")
    hub.pods.bound("slow")

    hub.stop("slow")

    one_more_starts(hub)


def test_a_start_that_takes_too_long_frees_the_gpu(hub: RunningHub) -> None:
    hub.start("impatient-slow")
    hub.events_end("impatient-slow")

    one_more_starts(hub)


def test_deleting_the_pod_during_the_start_frees_the_gpu(hub: RunningHub) -> None:
    hub.start("slow")
    hub.pods.bound("slow")
    hub.pods.cluster.api.delete(f"{hub.pods.path}/jupyter-slow", grace=0)

    one_more_starts(hub)


def test_a_start_takes_over_the_gpu_of_its_older_pod(hub: RunningHub) -> None:
    spec = {"containers": [{"name": "notebook", "image": "x"}]}
    labels = {"component": "singleuser-server"}
    metadata = {"name": "jupyter-alice", "labels": labels}
    hub.pods.cluster.api.create(hub.pods.path, {"metadata": metadata, "spec": spec})
    older = hub.pods.bound("alice")["metadata"]["uid"]

    assert hub.start("alice").status_code in {201, 202}
    assert hub.start("bob").status_code in {202, 409}

    hub.until_ready("alice")
    hub.events_end("bob")
    assert hub.pods.names() == {"jupyter-alice"}
    assert hub.pods.of("alice")["metadata"]["uid"] != older


def test_a_start_that_loses_its_gpu_to_another_pod_is_refused_at_once(hub: RunningHub) -> None:
    hub.start("unlucky")
    try:
        told = hub.events("unlucky")[-1]

        assert told["failed"]
        assert "someone else took the room that it needs." in told["message"]
        wait_for(lambda: hub.pods.names() == {"other"})
    finally:
        _delete(hub, "other")
    wait_for(lambda: not hub.pods.all())
    one_more_starts(hub)


COURSE = """
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "node_selector": {"gpu": "course"}}}
"""


def test_a_class_starts_at_once_where_as_many_placeholders_hold_the_gpus(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    seats, labels = 5, {"gpu": "course"}
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(seats)}
    add_nodes(Fleet((NodeGroup("course", 1, amounts, labels=labels),)))
    with start_gpu_hub(ANSWER_AT_ONCE + COURSE) as hub, ThreadPoolExecutor(seats + 1) as people:
        api = hub.pods.cluster.api
        name = f"{hub.pods.namespace}-placeholders"
        api.create(PRIORITIES, {"metadata": {"name": name}, "value": -10})
        for number in range(seats):
            asked = {"name": "x", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            spec = {"priorityClassName": name, "containers": [asked], "nodeSelector": labels}
            api.create(hub.pods.path, {"metadata": {"name": f"placeholder-{number}"}, "spec": spec})
        wait_for(lambda: all(it["spec"].get("nodeName") for it in hub.pods.all()))
        api.delete(f"{PRIORITIES}/{name}")

        names = [f"student-{number}" for number in range(seats + 1)]
        for _ in people.map(hub.start, names):
            pass
        seated = {f"jupyter-{it}" for it in names}
        wait_for(lambda: len(seated & hub.pods.names()) == seats)
        wait_for(lambda: not all(map(hub.server, names)))  # the last is refused

        # kube-scheduler 1.36 can miss the end of a placeholder, so some may wait for their node.
        assert len(seated & hub.pods.names()) == seats
        assert sum(bool(hub.server(it)) for it in names) == seats
        for it in names:
            hub.stop(it)


def _delete(hub: RunningHub, pod: str) -> None:
    with unless_gone():
        hub.pods.cluster.api.delete(f"{hub.pods.path}/{pod}", grace=0)
