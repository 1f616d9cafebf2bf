"""Hubs on a cluster that runs pods, whose starts wait as long as a test wants to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcluster import Fleet, LocalCluster, rbac
from tests.fixtures.cluster import ensure_namespace
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.waiting import wait_for

CONFIGURATION = f"""
import asyncio, os
from pathlib import Path
import gpuspawner

async def hold(spawner):
    while Path(os.environ["HOLD"], spawner.user.name).exists():
        await asyncio.sleep(0.05)

c.KubeSpawner.cmd = {single_user.COMMAND!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.pre_spawn_hook = hold
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
"""


@contextmanager
def a_held_hub(
    cluster: LocalCluster, folder: Path, namespace: str, fleet: Fleet, configuration: str
) -> Iterator[RunningHub]:
    """Run a hub with these nodes and these lines, and leave nothing of it."""
    folder.mkdir()
    ensure_namespace(cluster, namespace)
    kubeconfig = rbac.hub_kubeconfig(cluster, namespace)
    nodes, pods = cluster.add_nodes(fleet), Pods(cluster, namespace)
    environment = {"KUBECONFIG": str(kubeconfig), "HOLD": str(folder)}
    named = f"c.KubeSpawner.namespace = {namespace!r}"
    whole = f"{CONFIGURATION}{named}\n{configuration}\ngpuspawner.configure(c)\n"
    try:
        with running_hub(folder, whole, environment=environment, pods=pods) as hub:
            hub.until_it_sees_the_cluster()
            yield hub
    finally:
        cluster.api.delete(pods.path, grace=0)
        try:
            wait_for(lambda: not pods.all())
        finally:
            cluster.remove_nodes(nodes)


@contextmanager
def held_back(folder: Path, user: str) -> Iterator[None]:
    """Let no server of a user go on starting, in the hub of this folder."""
    hold = folder / user
    hold.touch()
    try:
        yield
    finally:
        hold.unlink()
