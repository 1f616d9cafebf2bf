"""Policies in a hub: who may have what, by form and REST, for default and named servers."""

from __future__ import annotations

import json

import pytest

from localcluster import Fleet, NodeGroup, Taint
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

NODES = Fleet(
    (
        NodeGroup(
            "t4",
            1,
            {"cpu": "32", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "16"},
            {"gpu": "t4"},
            (Taint("nvidia.com/gpu", "present", "NoSchedule"),),
        ),
    )
)
OFFERS = """
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2, 4], "node_selector": {"gpu": "t4"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.load_groups = {
    "course": {"users": ["ann", "bob", "cleo"]}, "staff": {"users": ["cleo"]}}
"""
COURSE = """
c.GPUSpawner.policies = {
    "course": {
        "groups": ["course"], "except": {"groups": ["staff"]},
        "gpus_per_user": 2, "gpus_per_group": 3,
        "explanation": "The course shares three GPUs."},
    "size": {"gpus_per_server": 2, "except": {"roles": ["admin"]}},
}
"""


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    add_nodes(NODES)
    return kept_hub(OFFERS + COURSE)


@pytest.mark.each_hub
def test_limits_of_server_user_and_group_hold_for_all_servers(hub: RunningHub) -> None:
    def start(user: str, gpus: int, server: str = "") -> tuple[int, str]:
        path = f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
        hub.api("POST", f"/users/{user}")
        answer = hub.api("POST", path, {"accelerator": "t4", "gpus": gpus})
        return answer.status_code, answer.json()["message"] if answer.status_code >= 400 else ""

    status, told = start("cleo", 4)
    assert status == 403
    assert "A server of yours can have at most 2 GPUs; this one would have 4 GPUs." in told

    assert start("ann", 1)[0] in (201, 202)
    hub.until_ready("ann")
    [pod] = hub.pods.all()
    granted = json.loads(pod["metadata"]["annotations"]["gpuspawner/grant"])
    assert granted == {"accelerator": "t4", "policies": ["course", "size"], "groups": ["course"]}

    status, told = start("ann", 2, "train")
    assert status == 409
    assert told == (
        "The course shares three GPUs. You can have 2 GPUs at a time, and you're using 1: your "
        "default server. Stop one of these servers first, or choose a smaller one."
    )
    assert start("ann", 1, "train")[0] in (201, 202)

    status, told = start("bob", 2)
    assert status == 409
    assert "The group course can have 3 GPUs at a time, and uses 2" in told
    assert start("bob", 1)[0] in (201, 202)
    assert start("cleo", 2)[0] in (201, 202)

    assert hub.api("DELETE", "/users/ann/server").status_code in (202, 204)
    wait_for(lambda: "" not in hub.api("GET", "/users/ann").json()["servers"])
    assert start("bob", 1, "more")[0] in (201, 202)


@pytest.fixture
def ends_soon(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub whose servers with a GPU end after a minute, the shortest lifetime; Ann has one."""
    add_nodes(NODES)
    policies = 'c.GPUSpawner.policies = {"short": {"lifetime": "1m"}}\n'
    hub = kept_hub(f"{OFFERS}{policies}c.KubeSpawner.poll_interval = 1\n{ANSWER_AT_ONCE}")
    hub.start("ann", {"accelerator": "t4"})
    return hub


def test_a_server_with_a_gpu_has_a_lifetime_that_its_owner_reads(ends_soon: RunningHub) -> None:
    told = [it["message"] for it in ends_soon.events("ann")]

    assert "This server ends 1 minute after it starts. Save your work before then." in told
    ends_soon.until_ready("ann")
    [pod] = ends_soon.pods.all()
    assert pod["spec"]["activeDeadlineSeconds"] == 60
    environment = {it["name"]: it.get("value") for it in pod["spec"]["containers"][0]["env"]}
    assert environment["GPUSPAWNER_LIFETIME_SECONDS"] == "60"
    home = ends_soon.person("ann").open("/hub/home")
    assert "Your default server ends in 1 minute. Save your work before then." in home.text


@pytest.mark.nightly(why="it takes a minute; test_endings sees a shorter deadline pass")
def test_a_server_with_a_gpu_ends_after_its_lifetime(ends_soon: RunningHub) -> None:
    ends_soon.until_ready("ann")

    wait_for(lambda: not ends_soon.server("ann"), timeout=150)

    assert not ends_soon.pods.all()
    assert "ann's server has ended: deadline" in ends_soon.log
    ann = ends_soon.person("ann")
    assert "Your last server ended after 1 minute" in ann.open("/hub/spawn").text
    assert "ends in" not in ann.open("/hub/home").text
