"""The stage of a race: a control plane, nodes of 1, 2, 4 and 8 GPUs, a hub and a twin."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import Fleet, LocalCluster, NodeGroup, Pods, kubeconfig, rbac
from localcluster.ports import free_ports
from tests.fixtures.bare_cluster import bare
from tests.hub.pods import Pods as PodsOfHub
from tests.hub.running import RunningHub, running_hub
from tests.race.answering import answering
from tests.race.cutting import Cutter
from tests.race.replay import Line
from tests.race.servers import Servers
from tests.race.twin import Twin

SIZES = (1, 2, 4, 8)
GPU = "nvidia.com/gpu"
NAMESPACE = "race"

CONFIGURATION = """
import gpuspawner
from tests.race import recording
recording.into({recording!r}, {namespace!r})
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.port = {port}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.start_timeout = 120
c.GPUSpawner.accelerators = {{
    "gpu": {{"display_name": "GPU", "counts": [1, 2, 3, 4, 8], "node_selector": {{"gpu": "yes"}}}}
}}
gpuspawner.configure(c)
"""


@dataclass
class Stage:
    """All that a race needs.

    Attributes:
        cluster: The control plane of the hub.
        hub: The hub.
        servers: What it says of people's servers.
        twin: Where a recording is played again.
        cutter: The hub's way to the API server.
        recording: What the hub's view saw and its preflight said.
    """

    cluster: LocalCluster
    hub: RunningHub
    servers: Servers
    twin: Twin
    cutter: Cutter
    recording: Path

    def lines(self, since: int = 0) -> list[Line]:
        """What the hub has recorded, from the given line on; not the one that it is writing."""
        return [json.loads(line) for line in self.recording.read_text().split("\n")[since:-1]]

    def written(self) -> int:
        """How many lines the hub has recorded."""
        return self.recording.read_bytes().count(b"\n")

    def reservations(self) -> int:
        """How many reservations there were when the hub last looked."""
        return next((x["gpus"] for x in reversed(self.lines()) if x["what"] == "reservations"), 0)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Set it up in a folder, and take it down.

    Pods are reported to run, and one server answers the hub for all of them.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(folder / "cluster", pods=Pods.REPORT))
        twin = stack.enter_context(bare(folder / "twin"))
        for each in (cluster, twin):
            each.add_nodes(nodes())
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        cutter = Cutter(cluster.url, random.Random(0))
        stack.enter_context(cutter.open())
        (port,) = free_ports(1)
        stack.enter_context(answering(port))
        recording = folder / "recording.jsonl"
        recording.touch()
        lines = CONFIGURATION.format(recording=str(recording), namespace=NAMESPACE, port=port)
        (folder / "hub").mkdir()
        hub = stack.enter_context(
            running_hub(
                folder / "hub",
                lines,
                environment={"KUBECONFIG": str(_through(cutter, cluster, folder))},
                pods=PodsOfHub(cluster, NAMESPACE),
            )
        )
        hub.until_it_sees_the_cluster()
        servers = Servers(hub)
        stack.enter_context(servers.watching())
        yield Stage(cluster, hub, servers, Twin(twin), cutter, recording)


def nodes() -> Fleet:
    groups = []
    for gpus in SIZES:
        room = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(gpus)}
        groups.append(NodeGroup(f"node-{gpus}", 1, room, {"gpu": "yes"}))
    return Fleet(tuple(groups))


def _through(cutter: Cutter, cluster: LocalCluster, folder: Path) -> Path:
    """The hub's kubeconfig, with the cutter's address."""
    written = json.loads(rbac.hub_kubeconfig(cluster, NAMESPACE).read_text())
    return kubeconfig.write(
        folder / "kubeconfig",
        url=f"https://127.0.0.1:{cutter.port}",
        ca=cluster.ca,
        token=written["users"][0]["user"]["token"],
        namespace=NAMESPACE,
    )
