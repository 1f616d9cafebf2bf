"""A hub for the attack: on a local cluster with slow admission, with a failure limit of 5."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcluster import LocalCluster, Pods, rbac
from tests.hub.configurations import T4, t4_nodes
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.servers.webhooks import Object, Webhooks, configured

WEBHOOK_SECONDS = 1.8
_NAMESPACE = "attack"
_CONFIGURATION = f"""
import gpuspawner
c.KubeSpawner.namespace = {_NAMESPACE!r}
c.KubeSpawner.cmd = {single_user.COMMAND!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.start_timeout = 60
c.Spawner.consecutive_failure_limit = 5
c.JupyterHub.load_roles[0]["scopes"].append("tokens")
c.GPUSpawner.default_accelerator = ""
{T4}
"""


def _slowly(_: Object) -> Object:
    time.sleep(WEBHOOK_SECONDS)
    return {}


@contextmanager
def own_hub(folder: Path, more: str = "") -> Iterator[RunningHub]:
    """Run the hub in a folder, with *more* configuration, until the block ends."""
    webhooks = Webhooks(folder)
    webhooks.answers["slow"] = _slowly
    configuration = f"{_CONFIGURATION}{more}\ngpuspawner.configure(c)\n"
    with LocalCluster(folder / "cluster", pods=Pods.RUN) as cluster:
        cluster.add_nodes(t4_nodes(1, 1))
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        environment = {"KUBECONFIG": str(rbac.hub_kubeconfig(cluster, _NAMESPACE))}
        (folder / "hub").mkdir()
        with (
            configured(cluster, webhooks.configuration(_NAMESPACE, "slow", "Mutating")),
            running_hub(folder / "hub", configuration, environment=environment) as hub,
        ):
            hub.until_it_sees_the_cluster()
            yield hub
    webhooks.stop()
