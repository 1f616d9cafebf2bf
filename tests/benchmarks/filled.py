"""Fills a cluster for a benchmark."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localcluster import LocalCluster, Pods, bulk
from localcluster.client import Object
from tests.benchmarks.running_pods import objects as whole_objects


@contextmanager
def filled_cluster(folder: Path, nodes: int, pods: int) -> Iterator[LocalCluster]:
    """Run a cluster of nodes with whole pods, without kube-scheduler."""
    with LocalCluster(folder / "cluster", pods=Pods.LEAVE, controllers=()) as cluster:
        stop_scheduler(cluster)
        bulk.put(cluster.plane.etcd_url, whole_objects(nodes, pods), nodes + pods)
        print(f"{nodes} nodes, {pods} pods", flush=True)
        yield cluster


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
