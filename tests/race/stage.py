"""The stage of a race: a control plane, nodes of 1, 2, 4 and 8 GPUs, a hub and a twin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.ports import free_ports
from tests.hub.running import RunningHub
from tests.race.proxied import proxied_hub, reporting_cluster
from tests.race.replay import Line
from tests.race.servers import Servers
from tests.race.twin import Twin
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.single_user import serving_every_pod

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
    """The parts of a race.

    Attributes:
        cluster: The control plane of the hub.
        hub: The hub.
        servers: The hub's answers about users' servers.
        twin: Replays a recording on a second cluster.
        proxy: Between the hub and the API server.
        recording: The file of what the hub's view saw and its preflight answered.
    """

    cluster: LocalCluster
    hub: RunningHub
    servers: Servers
    twin: Twin
    proxy: CuttingProxy
    recording: Path

    def lines(self, since: int = 0) -> list[Line]:
        """Return the recorded lines from the given one on, without the one being written."""
        return [json.loads(line) for line in self.recording.read_text().split("\n")[since:-1]]

    def written(self) -> int:
        """Return how many lines the hub has recorded."""
        return self.recording.read_bytes().count(b"\n")

    def reservations(self) -> int:
        """Return the number of reservations when the hub last recorded it."""
        return next((x["gpus"] for x in reversed(self.lines()) if x["what"] == "reservations"), 0)


@contextmanager
def stage(folder: Path, twin: Twin) -> Iterator[Stage]:
    """Set the stage up in a folder, and take it down when the block ends.

    The cluster only reports pods as running, and one server answers the hub for all of them.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(reporting_cluster(folder, NAMESPACE, nodes()))
        (port,) = free_ports(1)
        stack.enter_context(serving_every_pod(port))
        recording = folder / "recording.jsonl"
        recording.touch()
        lines = CONFIGURATION.format(recording=str(recording), namespace=NAMESPACE, port=port)
        hub, proxy = stack.enter_context(proxied_hub(folder, cluster, NAMESPACE, lines))
        servers = Servers(hub)
        stack.enter_context(servers.watching())
        yield Stage(cluster, hub, servers, twin, proxy, recording)


@contextmanager
def twin_on(cluster: LocalCluster) -> Iterator[Twin]:
    """Give the twin the same nodes on another cluster, which nothing else uses meanwhile."""
    names = cluster.add_nodes(nodes())
    yield Twin(cluster)
    cluster.remove_nodes(names)


def nodes() -> Fleet:
    groups = []
    for gpus in SIZES:
        room = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(gpus)}
        groups.append(NodeGroup(f"node-{gpus}", 1, room, {"gpu": "yes"}))
    return Fleet(tuple(groups))
