"""Every state that the form can show, and the nodes and pods that cause it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuspawner.preflight.availability import State
from localcluster import Fleet, LocalCluster, NodeGroup
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub

NAMESPACE = "forms"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Case:
    """An accelerator, and the nodes and pods that bring it into a state.

    Attributes:
        key: The accelerator's key; its nodes and their label have the same name.
        state: The state that the form shows.
        says: A text on its card.
        offer: Its entry in `accelerators`, without the name and the node selector.
        nodes: The number of its nodes.
        gpus: The number of GPUs on each node.
        held: The number of GPUs that a pod holds, for each node in turn.
        cordoned: Whether its nodes are cordoned.
    """

    key: str
    state: State
    says: str
    offer: dict[str, Any] = field(default_factory=dict)
    nodes: int = 1
    gpus: int = 1
    held: tuple[int, ...] = ()
    cordoned: bool = False

    @property
    def resource(self) -> str:
        return str(self.offer.get("resource", GPU))

    @property
    def name(self) -> str:
        return f"NVIDIA {self.key.upper()}"

    @property
    def entry(self) -> dict[str, Any]:
        selector = {"node_selector": {"browser": self.key}}
        return {"display_name": self.name, **selector, **self.offer}

    @property
    def group(self) -> NodeGroup:
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", self.resource: str(self.gpus)}
        return NodeGroup(f"b-{self.key}", self.nodes, amounts, labels={"browser": self.key})


ON_A_LIVE_CLUSTER = (
    Case(
        "a100",
        State.FREE,
        "6 of 8 free, at most 4 on one machine",
        {"description": "40 GB, for training", "counts": [1, 2, 4, 8]},
        nodes=2,
        gpus=4,
        held=(2,),
    ),
    Case("t4", State.BUSY, "the only one is in use", {"counts": [1]}, held=(1,)),
    Case(
        "l4",
        State.CAN_SCALE_UP,
        "takes about 8 minutes to start",
        {"scale_up": {"max_nodes": 2, "minutes": 8}},
        nodes=0,
    ),
    Case("v100", State.AWAY, "its machines are out of service right now", cordoned=True),
    Case("h100", State.ABSENT, "no machine here can provide it", nodes=0),
    Case(
        "a10",
        State.FREE,
        "its memory at the same time",
        {"resource": "nvidia.com/gpu.shared", "description": "24 GB, for classes"},
        gpus=10,
    ),
    Case(
        "a30",
        State.FREE,
        "with its own 6 GB of memory",
        {"resource": "nvidia.com/mig-1g.6gb", "counts": [1, 2]},
        gpus=4,
    ),
)
WHERE_NOTHING_CAN_BE_READ = (State.READING, State.UNKNOWN)
WHERE_A_POOL_MAY_GROW = State.MAY_SCALE_UP
"""The state that needs an autoscaler; test_pools.py shows it."""
WHERE_A_LIMIT_IS_REACHED = State.LIMITED
"""The state that needs policies; test_policies.py shows it."""

CONFIGURATION = f"""
import gpuspawner

c.KubeSpawner.namespace = {NAMESPACE!r}
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = { ({case.key: case.entry for case in ON_A_LIVE_CLUSTER})!r}
c.GPUSpawner.default_accelerator = ""
c.GPUSpawner.images = {{
    "minimal": {{"display_name": "Python", "image": "m:1"}},
    "pytorch": {{"display_name": "PyTorch with CUDA 12", "image": "p:1"}},
}}
c.GPUSpawner.memory_choices = ["2Gi", "16Gi", "128Gi"]
c.GPUSpawner.cpu_choices = [1, 4]
c.GPUSpawner.unlisted_image = {{
    "validation_regex": "quay.io/jupyter/.*",
    "validation_message": "an image of quay.io/jupyter, such as quay.io/jupyter/r-notebook",
}}
gpuspawner.configure(c)
"""


@contextmanager
def a_hub(
    cluster: LocalCluster, folder: Path, kubeconfig: Path, before: str = ""
) -> Iterator[RunningHub]:
    """Run a hub with an accelerator for each case.

    Args:
        cluster: The cluster of its pods.
        folder: The folder of its files; it exists.
        kubeconfig: The hub's kubeconfig; it may not lead to *cluster*.
        before: Lines before its configuration.
    """
    environment = {"KUBECONFIG": str(kubeconfig)}
    pods = Pods(cluster, NAMESPACE)
    configuration = before + CONFIGURATION
    with running_hub(folder, configuration, environment=environment, pods=pods) as hub:
        yield hub


class Scene:
    """The nodes and pods of all cases, on a cluster that other tests may have used.

    Args:
        cluster: The cluster.
        namespace: The namespace of the pods.
    """

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._nodes: list[str] = []

    def set(self) -> None:
        """Create the nodes and pods."""
        groups = tuple(case.group for case in ON_A_LIVE_CLUSTER if case.nodes)
        plain = NodeGroup("b-cpu", 1, {"cpu": "16", "memory": "64Gi", "pods": "110"})
        self._nodes = self._cluster.add_nodes(Fleet((*groups, plain)))
        for case in ON_A_LIVE_CLUSTER:
            self._hold(case)
            if case.cordoned:
                for node in case.group.node_names():
                    self._cluster.kubectl("cordon", node)

    def add(self, case: Case) -> list[str]:
        """Create the nodes and pods of a further case; return the nodes' names."""
        names = self._cluster.add_nodes(Fleet((case.group,)))
        self._hold(case)
        return names

    def _hold(self, case: Case) -> None:
        for number, held in enumerate(case.held):
            self.hold(case, number, held)

    def hold(self, case: Case, node: int, gpus: int) -> None:
        """Create a pod that takes GPUs of one node."""
        limits = {case.resource: str(gpus), "memory": "1Gi"}
        spec = {
            "nodeName": f"b-{case.key}-{node}",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}],
        }
        metadata = {"name": f"holds-{case.key}-{node}"}
        self._cluster.api.create(self._pods, {"metadata": metadata, "spec": spec})

    def let_go(self, case: Case, node: int) -> None:
        """Delete that pod."""
        self._cluster.api.delete(f"{self._pods}/holds-{case.key}-{node}", grace=0)

    def strike(self) -> None:
        """Remove the nodes, and the pods with them."""
        self._cluster.remove_nodes(self._nodes)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"
