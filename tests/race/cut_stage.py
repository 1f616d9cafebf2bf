"""The stage of starts that are cut: they stay in a phase until the test goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests

from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster.client import unless_gone
from localcluster.ports import free_ports
from tests.hub.running import RunningHub
from tests.race.phases import CLAIM, GPU, SCHEDULER, Phase, Pod
from tests.race.proxied import proxied_hub, reporting_cluster
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.single_user import serving_every_pod
from tests.servers.webhooks import Object, Webhooks, configured
from tests.waiting import wait_for

NAMESPACE = "cuts"

CONFIGURATION = """
import gpuspawner
from tests.race.left import Left
def name_the_image(spawner, pod):
    # No node has it yet.
    pod.spec.containers[0].image = f"registry.example.org/{{spawner.user.name}}:1"
    return pod
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.extra_handlers = [("/left", Left)]
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.modify_pod_hook = name_the_image
# The webhook holds a request for longer than a cluster would.
c.KubeSpawner.k8s_api_request_timeout = 30
c.KubeSpawner.http_timeout = 5
# A failure that the hub counts would end it.
c.KubeSpawner.consecutive_failure_limit = 1
c.KubeSpawner.profile_list = {profiles!r}
c.GPUSpawner.default_filter_schedulers = [{scheduler!r}]
c.GPUSpawner.policies = {{"everybody": {{"gpus_per_user": 1}}}}
gpuspawner.configure(c)
"""


class Gate:
    """A webhook that holds the pods of a phase when they are created, and counts all."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.held: set[str] = set()
        self._open = threading.Event()
        self._lock = threading.Lock()

    def close(self) -> None:
        self._open.clear()
        self.held.clear()

    def open(self) -> None:
        self._open.set()

    def review(self, pod: Pod) -> Object:
        name = pod["metadata"]["name"]
        with self._lock:
            self.sent[name] += 1
        if name.startswith("jupyter-sending"):
            self.held.add(name)
            self._open.wait(25)
        return {}


class CutStage:
    """The parts of the soak.

    Attributes:
        cluster: The control plane.
        hub: Talks to the API server through `proxy`.
        gate: Holds pods that are sent.
    """

    def __init__(
        self,
        cluster: LocalCluster,
        fleet: Fleet,
        hub: RunningHub,
        proxy: CuttingProxy,
        gate: Gate,
        port: int,
    ) -> None:
        self.cluster = cluster
        self._fleet = fleet
        self.hub = hub
        self.proxy = proxy
        self.gate = gate
        self._port = port

    def pods(self) -> dict[str, Pod]:
        """Return the hub's pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.hub.pods.all()}

    def bind(self) -> None:
        """Bind each pod that waits for the test to a free node."""
        pods = self.pods().values()
        taken = {pod["spec"].get("nodeName") for pod in pods}
        of_ours = self._fleet.groups[-1].node_names()
        free = [name for name in of_ours if name not in taken]
        for pod in pods:
            is_waiting = not pod["spec"].get("nodeName")
            if pod["spec"]["schedulerName"] == SCHEDULER and is_waiting:
                name = pod["metadata"]["name"]
                body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": free.pop()}}
                with unless_gone():
                    self.cluster.api.create(f"{self.hub.pods.path}/{name}/binding", body)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let the servers listen that didn't before."""
        with serving_every_pod(self._port):
            yield

    def left(self) -> dict[str, int]:
        """Return the hub's promises that aren't zero."""
        answer = requests.get(f"{self.hub.url}/hub/left", timeout=30)
        answer.raise_for_status()
        return {key: number for key, number in answer.json().items() if number}


@contextmanager
def cut_stage(folder: Path, phases: tuple[Phase, ...], size: int) -> Iterator[CutStage]:
    """Set the stage up for *size* starts at once, and take it down when the block ends."""
    with ExitStack() as stack:
        fleet = nodes(size)
        cluster = stack.enter_context(reporting_cluster(folder, NAMESPACE, fleet))
        _make_claim(cluster)
        at_once, when_told = free_ports(2)
        stack.enter_context(serving_every_pod(at_once))
        gate = Gate()
        stack.enter_context(_asked(cluster, gate, folder))
        ports = {"listening": when_told}
        lines = CONFIGURATION.format(
            namespace=NAMESPACE,
            scheduler=SCHEDULER,
            profiles=[it.profile(ports.get(it.name, at_once)) for it in phases],
        )
        hub, proxy = stack.enter_context(proxied_hub(folder, cluster, NAMESPACE, lines))
        yield CutStage(cluster, fleet, hub, proxy, gate, when_told)


def nodes(count: int) -> Fleet:
    """Return nodes of one GPU each: a node pulls one image after the other."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "1"}
    groups = {"gpu": "yes", "bound": SCHEDULER}
    return Fleet(tuple(NodeGroup(it, count, room, {"gpu": label}) for it, label in groups.items()))


@contextmanager
def _asked(cluster: LocalCluster, gate: Gate, folder: Path) -> Iterator[None]:
    """Let the API server ask the gate about each pod that is really created."""
    webhooks = Webhooks(folder)
    webhooks.answers["gate"] = gate.review
    configuration = webhooks.configuration(NAMESPACE, "gate")
    condition = {"name": "real", "expression": "!has(request.dryRun) || !request.dryRun"}
    configuration["webhooks"][0].update(matchConditions=[condition], timeoutSeconds=30)
    try:
        with configured(cluster, configuration):
            yield
    finally:
        gate.open()
        webhooks.stop()


def _make_claim(cluster: LocalCluster) -> None:
    """Make a volume that many pods can have at once, and a claim to it."""
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "nfs": {"server": "nfs.example.org", "path": "/"},
        "storageClassName": "",
    }
    cluster.api.create("/api/v1/persistentvolumes", {"metadata": {"name": CLAIM}, "spec": spec})
    asked = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeName": CLAIM,
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
    cluster.api.create(path, {"metadata": {"name": CLAIM}, "spec": asked})
    claim = f"{path}/{CLAIM}"
    wait_for(lambda: cluster.api.get(claim)["status"].get("phase") == "Bound")
