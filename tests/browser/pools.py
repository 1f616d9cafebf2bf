"""Pools that grow, each in another state, offered as accelerators or as profiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcluster import ClusterAutoscaler, Fleet, LocalCluster, NodeGroup, Scaling
from tests.fixtures.cluster import ensure_namespace
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.waiting import wait_for

NAMESPACE = "pools"
GPU = "nvidia.com/gpu"
LABEL = "cloud.google.com/gke-nodepool"
"""The hub knows its autoscaler's groups by this label."""
FAST = ClusterAutoscaler(scan_seconds=0.5)


@dataclass(frozen=True)
class Pool:
    """A pool of one kind of GPU.

    Attributes:
        key: Its accelerator, profile, group of nodes, and their label.
        name: What users read.
        about: The description.
        scaling: How it may grow.
        nodes: The number of its nodes.
        declared: Whether the configuration says how far it grows.
    """

    key: str
    name: str
    about: str
    scaling: Scaling
    nodes: int = 0
    declared: bool = False

    @property
    def group(self) -> NodeGroup:
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "1"}
        return NodeGroup(self.key, self.nodes, amounts, {LABEL: self.key}, scaling=self.scaling)

    @property
    def scale_up(self) -> dict[str, Any]:
        declared = {"max_nodes": self.scaling.max_size, "minutes": 4}
        return {"scale_up": declared} if self.declared else {}

    @property
    def accelerator(self) -> dict[str, Any]:
        selector = {"node_selector": {LABEL: self.key}}
        words = {"display_name": self.name, "description": self.about, "counts": [1]}
        return {**words, **selector, **self.scale_up}

    @property
    def profile(self) -> dict[str, Any]:
        override = {"node_selector": {LABEL: self.key}, "extra_resource_limits": {GPU: "1"}}
        words = {"display_name": self.name, "description": self.about, "slug": self.key}
        return {**words, "kubespawner_override": override, **self.scale_up}


AT_ZERO = Pool("t4", "NVIDIA T4", "16 GB, for courses", Scaling(max_size=4), declared=True)
UNDECLARED = Pool("v100", "NVIDIA V100", "16 GB, for older code", Scaling(max_size=1))
GROWN = Pool("a10g", "NVIDIA A10G", "24 GB, for graphics", Scaling(max_size=3), nodes=1)
AT_MAXIMUM = Pool("a100", "NVIDIA A100", "80 GB, for training", Scaling(max_size=1), nodes=1)
SOLD_OUT = Pool(
    "h100",
    "NVIDIA H100",
    "80 GB, for large models",
    Scaling(max_size=1, stock=0, failure_seconds=0.5),
)
POOLS = (GROWN, AT_ZERO, UNDECLARED, AT_MAXIMUM, SOLD_OUT)

_HEAD = f"""
import gpuspawner
c.KubeSpawner.namespace = {NAMESPACE!r}
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
"""
ACCELERATORS = f"""{_HEAD}
c.GPUSpawner.accelerators = { ({pool.key: pool.accelerator for pool in POOLS})!r}
c.GPUSpawner.memory_choices = ["4Gi", "16Gi"]
gpuspawner.configure(c)
"""
CPU = {"display_name": "CPU only", "description": "2 GB of memory", "slug": "cpu"}
PROFILES = f"""{_HEAD}
c.KubeSpawner.profile_list = {[CPU, *(pool.profile for pool in POOLS)]!r}
gpuspawner.configure(c)
"""
HOLDER = {
    "metadata": {"name": "holder"},
    "spec": {
        "nodeName": f"{AT_MAXIMUM.key}-0",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "x", "resources": {"limits": {GPU: "1"}}}],
    },
}
"""A pod on the one node of `AT_MAXIMUM`."""


@contextmanager
def growing(cluster: LocalCluster) -> Iterator[None]:
    """Add the pools and their autoscaler to a cluster without nodes."""
    plain = NodeGroup("core", 1, {"cpu": "8", "memory": "32Gi", "pods": "110"})
    fleet = Fleet((plain, *(pool.group for pool in POOLS)), FAST)
    ensure_namespace(cluster, NAMESPACE)
    names = cluster.add_nodes(fleet)
    cluster.start_autoscaler(fleet)
    try:
        yield
    finally:
        cluster.stop_autoscaler()
        cluster.remove_nodes(names)


@contextmanager
def a_hub_of_pools(cluster: LocalCluster, folder: Path, configuration: str) -> Iterator[RunningHub]:
    """Run a hub with `ACCELERATORS` or `PROFILES`, after its pools have got into their states."""
    folder.mkdir()
    pods = Pods(cluster, NAMESPACE)
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    option = "profile" if configuration is PROFILES else "accelerator"
    try:
        with running_hub(folder, configuration, environment=environment, pods=pods) as hub:
            hub.until_it_sees_the_cluster()
            pods.cluster.api.create(pods.path, HOLDER)
            # Only who asks finds the pool sold out.
            hub.start("early", {option: SOLD_OUT.key})
            hub.events("early")
            yield hub
    finally:
        cluster.api.delete(pods.path, grace=0)
        wait_for(lambda: not pods.all())
