"""Fills a cluster for a benchmark."""

from collections.abc import Iterable

from localcluster import LocalCluster, bulk
from localcluster.client import Object


def fill(cluster: LocalCluster, objects: Iterable[Object], total: int) -> None:
    """Put nodes and pods without the API server, which would process every change."""
    cluster.plane.stop_apiserver()
    bulk.put(cluster.plane.etcd_url, objects, total)
    cluster.plane.start_apiserver()
    stop_scheduler(cluster)


def stop_scheduler(cluster: LocalCluster) -> None:
    """Stop kube-scheduler, which would read the whole cluster too."""
    for process in cluster.plane.processes():
        if process.name == "kube-scheduler":
            process.stop()
