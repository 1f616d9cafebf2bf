"""A cluster for one race, and a hub whose connections to its API server can be cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcluster import Fleet, LocalCluster, Pods, kubeconfig, rbac
from tests.hub.pods import Pods as PodsOfHub
from tests.hub.running import RunningHub, running_hub
from tests.servers.cutting_proxy import CuttingProxy


@contextmanager
def reporting_cluster(folder: Path, namespace: str, fleet: Fleet) -> Iterator[LocalCluster]:
    """Run a cluster with these nodes and this namespace, which only reports pods as running."""
    with LocalCluster(folder / "cluster", fleet=fleet, pods=Pods.REPORT) as cluster:
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield cluster


@contextmanager
def proxied_hub(
    folder: Path, cluster: LocalCluster, namespace: str, configuration: str
) -> Iterator[tuple[RunningHub, CuttingProxy]]:
    """Run a hub that talks to the API server through a proxy, with the chart's rights only."""
    proxy, directory = CuttingProxy(cluster), folder / "hub"
    directory.mkdir()
    with proxy.open():
        direct = kubeconfig.read(rbac.hub_kubeconfig(cluster, namespace))
        through = proxy.kubeconfig(folder / "kubeconfig", direct.token, namespace)
        environment = {"KUBECONFIG": str(through)}
        pods = PodsOfHub(cluster, namespace)
        with running_hub(directory, configuration, environment=environment, pods=pods) as hub:
            hub.until_it_sees_the_cluster()
            yield hub, proxy
