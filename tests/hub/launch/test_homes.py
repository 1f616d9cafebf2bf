"""First starts whose home directories are on volumes that people make by hand, without a class."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

CONFIGURATION = """
c.GPUSpawner.accelerators = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_capacity = "1Gi"
c.KubeSpawner.storage_class = ""
c.KubeSpawner.pvc_name_template = "home-{username}"
c.KubeSpawner.volumes = [{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}]
"""
NODE = NodeGroup(
    "t4",
    1,
    {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"},
    labels={"gpu": "t4"},
)
VOLUMES = "/api/v1/persistentvolumes"

MakeVolume = Callable[[str], None]


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(Fleet((NODE,)))
    return kept_hub(CONFIGURATION)


@pytest.fixture
def make_volume(hub: RunningHub) -> Iterator[MakeVolume]:
    """Make the volume for somebody's home, as an administrator does."""
    api, namespace, made = hub.pods.cluster.api, hub.pods.namespace, []

    def make(user: str) -> None:
        spec = {
            "storageClassName": "",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/homes"},
            "claimRef": {"namespace": namespace, "name": f"home-{user}"},
        }
        name = f"{namespace}-{user}"
        api.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
        made.append(name)

    yield make
    for name in made:
        api.delete(f"{VOLUMES}/{name}")


def has_claim(hub: RunningHub, user: str) -> bool:
    claims = f"/api/v1/namespaces/{hub.pods.namespace}/persistentvolumeclaims"
    names = {it["metadata"]["name"] for it in hub.pods.cluster.api.items(claims)}
    return f"home-{user}" in names


def test_a_first_start_waits_for_a_volume_that_is_made_after_its_pod(
    hub: RunningHub, make_volume: MakeVolume
) -> None:
    with ThreadPoolExecutor() as pool:
        started = pool.submit(hub.start, "ann", {"accelerator": "t4"})
        wait_for(lambda: hub.pods.names() or started.done())
        assert hub.pods.names() == {"jupyter-ann"}, started.result().text

        make_volume("ann")

        assert started.result().status_code == 201


@pytest.mark.nightly(why="it waits for volumes; one start stays")
def test_of_a_hundred_first_starts_with_volumes_that_are_bound_later_none_is_refused(
    hub: RunningHub, make_volume: MakeVolume
) -> None:
    users = [f"user-{number}" for number in range(100)]
    chance = random.Random(34)
    seconds = {user: chance.uniform(0, 15) for user in users}

    def first_start(user: str) -> str:
        started = starting.submit(hub.start, user, {"accelerator": None})
        wait_for(lambda: has_claim(hub, user) or started.done())
        sleep(seconds[user])
        make_volume(user)
        answer = started.result()
        return "" if answer.status_code == 201 else answer.text

    with ThreadPoolExecutor(10) as starting, ThreadPoolExecutor(10) as people:
        refusals = [said for said in people.map(first_start, users) if said]

    assert not refusals
