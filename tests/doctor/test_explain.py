"""`gpuspawner explain --user` counts the pods of a real API server, with the hub's rights."""

from __future__ import annotations

import json

import pytest

from tests.doctor.asking import DEMO, Hub, Plain
from tests.fixtures.cluster import AddNodes
from tests.unit.makers.policy_pods import container, plain

POLICIES = """
c.GPUSpawner.policies = {"course": {
    "groups": ["ml-2026"], "gpus_per_user": 1, "gpus_per_group": 2, "explanation": "One each."}}
"""
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


@pytest.fixture
def course(hub: Hub, add_nodes: AddNodes) -> Hub:
    """A hub with a policy, on a cluster with T4s."""
    add_nodes("demo")
    hub.configure(DEMO + POLICIES)
    return hub


def start(hub: Hub, user: str, server: str) -> None:
    """Create the pod of a server, as a hub does that charges it to the group."""
    grant = {"policies": ["course"], "groups": ["ml-2026"]}
    pod = plain(
        user,
        server,
        name=f"jupyter-{user}-{server}",
        grant=grant,
        containers=[{**container(gpu=1), "image": "example.com/notebook"}],
        tolerations=[TOLERATION],
    )
    pod["metadata"]["namespace"] = hub.namespace
    hub.cluster.api.create(f"/api/v1/namespaces/{hub.namespace}/pods", pod)


def explain(hub: Hub, *arguments: str) -> tuple[int, Plain]:
    configuration = str(hub.folder / "jupyterhub_config.py")
    asked = ("explain", "t4", *arguments, "--config", configuration, "--output", "json")
    status, printed = hub.ask(*asked)
    told: Plain = json.loads(printed)
    return status, told


def test_it_denies_as_the_hub_does_by_the_pods_that_exist(course: Hub) -> None:
    alice = ("--user", "alice", "--group", "ml-2026")
    status, told = explain(course, *alice)
    assert (status, told["outcome"], told["policies"]["applying"]) == (0, "fits", ["course"])

    start(course, "alice", "train")
    status, told = explain(course, *alice)

    assert (status, told["outcome"]) == (1, "denied")
    assert told["users_read"] == (
        "One each. You can have 1 GPU at a time, and you're using 1: train. "
        "Stop one of these servers first."
    )
    assert [(it["limit"], it["used"]) for it in told["policies"]["limits"]] == [
        ("gpus_per_user", 1),
        ("gpus_per_group", 1),
    ]


def test_a_share_that_others_use_up_denies_a_server(course: Hub) -> None:
    start(course, "bob", "a")
    start(course, "carol", "b")

    status, told = explain(course, "--user", "alice", "--group", "ml-2026")

    assert (status, told["policies"]["denied_by"]) == (1, "course")
    assert "The group ml-2026 can have 2 GPUs at a time, and uses 2" in told["users_read"]


def test_who_is_in_no_group_is_judged_by_no_policy_of_a_group(course: Hub) -> None:
    status, told = explain(course, "--user", "dave")

    assert (status, told["policies"]["applying"]) == (0, [])
