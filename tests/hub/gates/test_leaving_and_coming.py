"""A hub goes back to KubeSpawner, and comes again, while its servers run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.lines import NEXT, QUEUE, SECOND, told, wait_in_line
from tests.hub.running import RunningHub
from tests.waiting import wait_for

pytestmark = pytest.mark.each_hub

LASTING = """
c.JupyterHub.cleanup_servers = False
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.policies = {"everybody": {"gpus_per_user": 1}}
"""
PROFILES = """
c.KubeSpawner.profile_list = [
    {"display_name": "Tesla T4", "slug": "t4", "kubespawner_override": {
        "extra_resource_limits": {"nvidia.com/gpu": "1"}, "node_selector": {"gpu": "t4"}}},
    {"display_name": "CPU only", "slug": "cpu"}]
"""
OFFERS = {
    "accelerators": (T4, {"accelerator": "t4", "gpus": 1}),
    "profiles": (PROFILES, {"profile": "t4"}),
}
WITH_US = "import gpuspawner", "gpuspawner.configure(c)"
WITHOUT_US = "", 'c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"'
POLLING = "c.Spawner.poll_interval = 1\nc.JupyterHub.active_server_limit = 3\n"
FOREIGN = {"course": "ml", "gpus": {"of": ["a kind"]}, "accelerator": 7}


def leave(hub: RunningHub, lines: str = "") -> str:
    """Restart the hub with KubeSpawner and more lines; return its configuration with us."""
    ours = theirs = hub.configuration
    for with_us, without_us in zip(WITH_US, WITHOUT_US, strict=True):
        assert ours.count(with_us) == 1
        theirs = theirs.replace(with_us, without_us)
    hub.write_configuration(theirs + "\n" + lines)
    hub.begin()
    hub.until_it_serves()
    # Paths may have the name in them.
    assert not re.search(r"\b(import|from) gpuspawner|gpuspawner\.configure", theirs)
    return ours


def come(hub: RunningHub, configuration: str) -> None:
    """Restart the hub with us."""
    hub.write_configuration(configuration)
    hub.begin()
    hub.until_it_serves()
    hub.until_it_sees_the_cluster()


def uid(hub: RunningHub, user: str) -> str:
    return str(hub.pods.of(user)["metadata"]["uid"])


def stops(hub: RunningHub, user: str) -> bool:
    hub.stop(user)
    return f"jupyter-{user}" not in hub.pods.names()


@pytest.mark.parametrize(("offers", "chosen"), OFFERS.values(), ids=OFFERS)
def test_servers_outlast_the_way_to_kubespawner_and_back(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, offers: str, chosen: dict[str, Any]
) -> None:
    add_nodes(t4_nodes(1, 3))
    with start_gpu_hub(LASTING + offers) as hub:
        for user in ("alice", "bob", "carol"):
            hub.start_until_ready(user, chosen)
        pods = {user: uid(hub, user) for user in ("alice", "bob", "carol")}

        ours = leave(hub, PROFILES + POLLING)

        assert {user: uid(hub, user) for user in pods} == pods
        assert all(hub.server(user)["ready"] for user in pods)
        assert hub.start("dave").status_code == 429  # all three count
        hub.pods.delete("carol")
        wait_for(lambda: not hub.server("carol"))
        assert stops(hub, "bob")
        assert "CPU only" in hub.person("bob").open("/hub/spawn/bob").text
        hub.start_until_ready("bob")
        hub.start_until_ready("dave", FOREIGN)
        pods = {user: uid(hub, user) for user in ("alice", "bob", "dave")}

        come(hub, ours)

        assert {user: uid(hub, user) for user in pods} == pods
        assert all(hub.server(user)["ready"] for user in pods)
        assert hub.start("erin", chosen).status_code == 409  # all three GPUs are in use
        assert stops(hub, "alice")
        second = hub.api("POST", "/users/dave/servers/second", chosen)
        assert second.status_code == 409
        assert "You can have 1 GPU at a time" in second.json()["message"]
        assert stops(hub, "dave")
        assert "Tesla T4" in hub.person("dave").open("/hub/spawn/dave").text
        hub.start_until_ready("dave")
        hub.start_until_ready("erin", chosen)
        assert stops(hub, "bob")


def test_kubespawner_starts_who_waited_in_line_and_the_others_wait_again_when_we_are_back(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(T4 + QUEUE + ANSWER_AT_ONCE) as hub:
        hub.start_until_ready("alice")
        wait_in_line(hub, "bob", NEXT)
        wait_in_line(hub, "carol", SECOND)

        ours = leave(hub)

        assert hub.server("bob") == hub.server("carol") == {}
        hub.start_until_ready("bob")

        come(hub, ours)

        assert hub.server("bob")["ready"]
        wait_for(lambda: hub.server("carol").get("pending") == "spawn")
        assert told(hub, "carol") == NEXT
        hub.stop("alice")
        hub.until_ready("carol")
