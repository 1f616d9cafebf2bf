"""The stage of a race for places in line: fifteen GPUs on four nodes, and a hub with a line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from localcluster import LocalCluster
from localcluster.ports import free_ports
from tests.hub.running import RunningHub
from tests.race.proxied import proxied_hub, reporting_cluster
from tests.race.stage import nodes
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.single_user import serving_every_pod

NAMESPACE = "line"
GPUS = 15
CONFIGURATION = """
import gpuspawner
from gpuspawner.spawn import in_line
in_line.RELOAD_SECONDS = 1.0  # so that a closed page counts within the race
c.JupyterHub.cleanup_servers = False
c.JupyterHub.concurrent_spawn_limit = 20
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.port = {port}
c.KubeSpawner.delete_grace_period = 0
c.GPUSpawner.queue = True
c.GPUSpawner.accelerators = {{
    "gpu": {{"display_name": "GPU", "counts": [1, 2, 4, 8], "node_selector": {{"gpu": "yes"}}}}
}}
gpuspawner.configure(c)
"""


@dataclass
class LineStage:
    """The parts of the race; *proxy* is between the hub and the API server.

    Attributes:
        absent: When the hub or the API server was away, from and until, by the monotonic clock.
    """

    cluster: LocalCluster
    hub: RunningHub
    proxy: CuttingProxy
    absent: list[tuple[float, float]] = field(default_factory=list)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Note that nobody can start a server while the block lasts."""
        since = time.monotonic()
        yield
        self.absent.append((since, time.monotonic()))


@contextmanager
def line_stage(folder: Path) -> Iterator[LineStage]:
    """Set the stage up in a folder, and take it down when the block ends."""
    with ExitStack() as stack:
        cluster = stack.enter_context(reporting_cluster(folder, NAMESPACE, nodes()))
        (port,) = free_ports(1)
        stack.enter_context(serving_every_pod(port))
        lines = CONFIGURATION.format(namespace=NAMESPACE, port=port)
        hub, proxy = stack.enter_context(proxied_hub(folder, cluster, NAMESPACE, lines))
        yield LineStage(cluster, hub, proxy)
