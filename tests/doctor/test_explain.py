"""`gpuspawner explain --user` counts the pods of a real API server, with the hub's rights."""

import json

import pytest

from tests.doctor.asking import DEMO
from tests.unit.makers.policy_pods import container, plain

POLICIES = """
c.GPUSpawner.policies = {"course": {
    "groups": ["ml-2026"], "gpus_per_user": 1, "gpus_per_group": 2, "explanation": "One each."}}
"""
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


@pytest.fixture
def course(hub, add_nodes):
    """A hub with a policy, on a cluster with T4s."""
    add_nodes("demo")
    hub.configure(DEMO + POLICIES)
    return hub


def start(hub, user, server):
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


def explain(hub, *arguments):
    configuration = str(hub.folder / "jupyterhub_config.py")
    asked = ("explain", "t4", *arguments, "--config", configuration, "--output", "json")
    status, printed = hub.ask(*asked)
    told = json.loads(printed)
    return status, told


def test_it_denies_as_the_hub_does_by_the_pods_that_exist(course):
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
