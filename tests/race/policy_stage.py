"""The stage of a race for limits: a control plane with GPUs for everybody, and a hub with policies.

Only policies refuse here, because no node is ever full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.ports import free_ports
from tests.hub.running import RunningHub
from tests.race.limits import ACCELERATORS, Class
from tests.race.proxied import proxied_hub, reporting_cluster
from tests.race.servers import Servers
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.single_user import serving_every_pod

NAMESPACE = "policies"

CONFIGURATION = """
import gpuspawner
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.load_roles[0]["scopes"].append("tokens")
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.port = {port}
c.KubeSpawner.delete_grace_period = 1
c.KubeSpawner.start_timeout = 120
c.GPUSpawner.accelerators = {accelerators!r}
{policies}
gpuspawner.configure(c)
"""


@dataclass
class PolicyStage:
    """The parts of a race for limits.

    Attributes:
        hub: Talks to the API server through `proxy`.
        servers: The hub's answers about users' servers.
        users: Who takes part.
    """

    cluster: LocalCluster
    hub: RunningHub
    servers: Servers
    proxy: CuttingProxy
    users: Class


@contextmanager
def policy_stage(folder: Path, people: int) -> Iterator[PolicyStage]:
    """Set the stage up in a folder, and take it down when the block ends."""
    users = Class.of(people)
    with ExitStack() as stack:
        cluster = stack.enter_context(reporting_cluster(folder, NAMESPACE, _nodes(people)))
        (port,) = free_ports(1)
        stack.enter_context(serving_every_pod(port))
        lines = CONFIGURATION.format(
            namespace=NAMESPACE,
            port=port,
            accelerators={key: _accelerator(key) for key in ACCELERATORS},
            policies=users.configuration,
        )
        hub, proxy = stack.enter_context(proxied_hub(folder, cluster, NAMESPACE, lines))
        servers = Servers(hub)
        stack.enter_context(servers.watching())
        yield PolicyStage(cluster, hub, servers, proxy, users)


def _accelerator(key: str) -> dict[str, object]:
    return {
        "display_name": ACCELERATORS[key],
        "counts": [1, 2, 4],
        "node_selector": {"gpu": key},
    }


def _nodes(people: int) -> Fleet:
    """Nodes on which all that people may ask for fits at once: four servers of four GPUs each."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "64"}
    count = people // 4 + 1
    return Fleet(tuple(NodeGroup(key, count, room, {"gpu": key}) for key in ACCELERATORS))
