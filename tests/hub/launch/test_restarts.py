"""A restarted hub knows which server holds which GPU, and each user's last granted choice."""

from __future__ import annotations

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, t4_nodes
from tests.hub.conftest import StartGPUHub

pytestmark = pytest.mark.each_hub

LASTING = """
c.JupyterHub.cleanup_servers = False
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2], "node_selector": {"gpu": "t4"}}}
"""
# It asks its provider for roles before the hub has its settings. Meanwhile, other tasks run.
ASKS_FOR_ROLES = """
import asyncio
from jupyterhub.auth import DummyAuthenticator
class AsksForRoles(DummyAuthenticator):
    manage_roles = True
    async def load_managed_roles(self):
        await asyncio.sleep(0.1)
        return []
c.JupyterHub.authenticator_class = AsksForRoles
c.GPUSpawner.gpu_use = True
"""


def test_servers_and_the_last_granted_choice_survive_a_restart(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 2))
    with start_gpu_hub(LASTING) as hub:
        hub.start_until_ready("alice", {"accelerator": "t4", "gpus": 2})

        hub.end()
        hub.begin()
        hub.until_it_serves()

        assert hub.server("alice")["ready"]
        assert "configure(c) wasn't called" not in hub.log
        assert hub.start("bob").status_code == 409
        hub.stop("alice")
        assert hub.start_until_ready("alice")["user_options"]["gpus"] == 2
        hub.stop("alice")


def test_servers_survive_a_restart_in_which_the_authenticator_waits_for_its_provider(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 2))
    with start_gpu_hub(LASTING + ANSWER_AT_ONCE + ASKS_FOR_ROLES) as hub:
        hub.start_until_ready("alice")

        hub.end()
        hub.begin()
        hub.until_it_serves()

        assert hub.server("alice")["ready"]
        hub.stop("alice")
