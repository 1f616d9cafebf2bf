"""Configurations, and nodes for them, that several tests of this folder use."""

from __future__ import annotations

from localcluster import Fleet, NodeGroup

T4 = """
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2], "node_selector": {"gpu": "t4"}}}
"""
ANSWER_AT_ONCE = 'c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}\n'
# As with enable_auth_state, the hub really waits for something before the gate.
SLOW_AUTHENTICATOR = """
import asyncio
from jupyterhub.auth import DummyAuthenticator
class Slow(DummyAuthenticator):
    async def pre_spawn_start(self, user, spawner):
        await asyncio.sleep(0.01)
c.JupyterHub.authenticator_class = Slow
"""


def t4_nodes(count: int, gpus: int) -> Fleet:
    """Nodes for `T4`."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return Fleet((NodeGroup("t4", count, amounts, labels={"gpu": "t4"}),))
