"""What all races have: a cluster that only reports its pods, a hub behind a proxy, and a result."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from localcluster import Fleet, LocalCluster, NodeGroup, Pods, kubeconfig, rbac
from localcluster.ports import free_ports
from tests.hub.pods import Pods as PodsOfHub
from tests.hub.running import RunningHub, running_hub
from tests.servers.cutting_proxy import CuttingProxy
from tests.servers.single_user import serving_every_pod
from tests.waiting import wait_for

Object = dict[str, Any]
"""An object of the Kubernetes or the hub's API as plain data."""

SIZES = (1, 2, 4, 8)
GPU = "nvidia.com/gpu"

ACCELERATOR = """
c.GPUSpawner.accelerators = {
    "gpu": {"display_name": "GPU", "counts": [1, 2, 3, 4, 8], "node_selector": {"gpu": "yes"}}
}
"""
"""The accelerator of `nodes`."""
_CONFIGURATION = """
import gpuspawner
from tests.hub.state_page import StatePage
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.extra_handlers = [("/tests/state", StatePage)]
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.port = {port}
c.KubeSpawner.delete_grace_period = 0
{more}
gpuspawner.configure(c)
"""


@dataclass
class Result:
    """The outcomes of a round.

    Attributes:
        counts: How many requests, starts and pods came to what.
        most: The highest figures of any round: what was there at once, or seconds.
        wrong: What must not happen, one sentence each.
    """

    counts: Counter[str] = field(default_factory=Counter)
    most: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Result, seed: int) -> None:
        """Add the outcomes of another round, which began with this seed."""
        self.counts.update(other.counts)
        for what, amount in other.most.items():
            self.most[what] = max(amount, self.most.get(what, 0))
        self.wrong += [f"{it} (seed {seed})" for it in other.wrong]

    def __str__(self) -> str:
        counts = [f"{count:6d}  {what}" for what, count in sorted(self.counts.items())]
        most = [f"{amount:6.3g}  {what}, at most" for what, amount in sorted(self.most.items())]
        return "\n".join([*counts, *most, *(f" WRONG: {it}" for it in self.wrong)])


class Servers:
    """All users' servers, polled once for all threads: a hundred pollers would stop the hub.

    Methods without a server's name are about the default server.
    """

    def __init__(self, hub: RunningHub) -> None:
        self._hub = hub
        self._asked = 0
        self._servers: dict[str, dict[str, Object]] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Poll twice a second while the block lasts."""
        with beside(self._watch):
            yield

    def now(self, user: str, name: str = "") -> Object:
        """Return a user's server as of the last poll; {} for none."""
        return self._servers.get(user, {}).get(name, {})

    def until_idle(self, user: str, name: str = "") -> Object:
        """Wait until nothing is pending for a user's server; return it, {} for none."""
        # The answer to a poll that has begun may be older than this call.
        asked = self._asked + 2

        def idle() -> tuple[Object] | None:
            server = self.now(user, name)
            return None if self._asked < asked or server.get("pending") else (server,)

        (server,) = wait_for(idle, timeout=300)
        return server

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.5):
            try:
                answer = self._hub.api("GET", "/users?limit=1000")
                answer.raise_for_status()
                users = answer.json()
            except requests.RequestException:
                continue
            self._servers = {user["name"]: user["servers"] for user in users}
            self._asked += 1


@dataclass
class Stage:
    """The parts of a race.

    Attributes:
        cluster: The control plane of the hub.
        hub: Talks to the API server through `proxy`, with the chart's rights only.
        servers: The hub's answers about users' servers, for who watches them.
        absent: When the hub or the API server was away, from and until, by the monotonic clock.
    """

    cluster: LocalCluster
    hub: RunningHub
    proxy: CuttingProxy
    servers: Servers
    absent: list[tuple[float, float]] = field(default_factory=list)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Note that nobody can start a server while the block lasts."""
        since = time.monotonic()
        yield
        self.absent.append((since, time.monotonic()))

    def promises(self) -> dict[str, int]:
        """Return how many promises the hub has, unless it has none."""
        answer = requests.get(f"{self.hub.direct}/hub/tests/state", timeout=30)
        answer.raise_for_status()
        number = answer.json()["promises"]
        return {"promises": number} if number else {}

    def delete_pods(self) -> None:
        """Remove all pods at once."""
        self.cluster.api.delete(self.hub.pods.path, grace=0)


@contextmanager
def reporting_cluster(folder: Path, namespace: str, fleet: Fleet) -> Iterator[LocalCluster]:
    """Run a cluster with these nodes and this namespace, which only reports pods as running."""
    with LocalCluster(folder / "cluster", fleet=fleet, pods=Pods.REPORT) as cluster:
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        yield cluster


@contextmanager
def staged(folder: Path, namespace: str, fleet: Fleet, configuration: str) -> Iterator[Stage]:
    """Set a stage up in a folder, and take it down when the block ends.

    One web server answers the hub for all pods.
    """
    proxied, directory = folder / "kubeconfig", folder / "hub"
    directory.mkdir()
    (port,) = free_ports(1)
    lines = _CONFIGURATION.format(namespace=namespace, port=port, more=configuration)
    with ExitStack() as stack:
        cluster = stack.enter_context(reporting_cluster(folder, namespace, fleet))
        stack.enter_context(serving_every_pod(port))
        proxy = CuttingProxy(cluster)
        stack.enter_context(proxy.open())
        direct = kubeconfig.read(rbac.hub_kubeconfig(cluster, namespace))
        proxy.kubeconfig(proxied, direct.token, namespace)
        environment, pods = {"KUBECONFIG": str(proxied)}, PodsOfHub(cluster, namespace)
        hub = stack.enter_context(running_hub(directory, lines, environment=environment, pods=pods))
        hub.until_it_sees_the_cluster()
        yield Stage(cluster, hub, proxy, Servers(hub))


def nodes() -> Fleet:
    """Return one node of each size: fifteen GPUs in all."""
    return Fleet(tuple(node_group(f"node-{gpus}", 1, gpus, "yes") for gpus in SIZES))


def node_group(name: str, count: int, gpus: int, label: str) -> NodeGroup:
    """Return *count* nodes with so many GPUs each, which pods select by their label ``gpu``."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(gpus)}
    return NodeGroup(name, count, room, {"gpu": label})


def pod_asking_for(gpus: int, name: str, **spec: object) -> Object:
    """Return a pod with one container."""
    container = {"name": "notebook", "image": "x", "resources": {"limits": {GPU: str(gpus)}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def gpus_of(pod: Object) -> int:
    """Return how many GPUs a pod's containers ask for."""
    resources = (container.get("resources", {}) for container in pod["spec"]["containers"])
    return sum(int(it.get("limits", {}).get(GPU, 0)) for it in resources)


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do *work* beside the block, set its event at the block's end, and wait until it has ended.

    If the work fails, so does the block.
    """
    over = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work, over)
        try:
            yield
        finally:
            over.set()
            done.result()
