"""Compares starts with GPUSpawner and with KubeSpawner: `python -m tests.benchmarks.spawning`.

Two real hubs on one real cluster start the same small server in turns, one with KubeSpawner and one
with GPUSpawner, and send the options that the form sends. It prints figures; it asserts nothing.

A start with GPUSpawner asks the API server once by a dry run. So it prints the ratio to a start
with KubeSpawner and one dry run, too. The dry runs are those of the hub's own client, in a process
that does nothing else; their processor time is this process's.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path

from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.client import Client
from localcluster import LocalCluster, Pods, rbac
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user

RUNS = 40
OPTIONS = {"accelerator": "t4", "gpus": 1, "image": None, "memory": None, "cpu": None}
"""As the form sends them; KubeSpawner ignores them."""

STOCK = """
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = {server!r}
c.KubeSpawner.delete_grace_period = 0
"""
OURS = """
import gpuspawner
c.GPUSpawner.accelerators = {"t4": {"node_selector": {"kubernetes.io/hostname": "gpu-0"}}}
gpuspawner.configure(c)
"""


@dataclass
class Starts:
    """Seconds from the request to a ready server, and the hub's processor time meanwhile."""

    hub: RunningHub
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def once(self, user: str) -> None:
        """Start a server, wait until it is ready, and stop it."""
        with self.measured():
            self.hub.start(user, OPTIONS)
            self.hub.until_ready(user)
        self.hub.stop(user)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure what happens until the block ends."""
        before, start = self._spent(), time.perf_counter()
        yield
        self.clock.append(time.perf_counter() - start)
        self.processor.append(self._spent() - before)

    def _spent(self) -> float:
        """Return the processor time of all the hub's threads; the kernel counts nanoseconds."""
        tasks = Path(f"/proc/{self.hub.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def hub_on(cluster: LocalCluster, folder: Path, name: str, more: str) -> Iterator[RunningHub]:
    """Run a hub with KubeSpawner, in a namespace of its own, or with what *more* lines make it."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    kubeconfig = rbac.hub_kubeconfig(cluster, name)
    (folder / name).mkdir()
    lines = STOCK.format(namespace=name, server=single_user.COMMAND)
    environment = {"KUBECONFIG": str(kubeconfig)}
    with running_hub(folder / name, lines + more, environment=environment) as hub:
        yield hub


async def _dry_runs(kubeconfig: Path) -> tuple[float, float]:
    """Return the medians of a dry run by the clock and of its processor time, in seconds."""
    client = Client(partial(_configuration, kubeconfig))
    container = {"name": "notebook", "image": "x"}
    pod = {"metadata": {"generateName": "dry-"}, "spec": {"containers": [container]}}
    clock, processor = [], []
    for _ in range(RUNS + 1):
        start, before = time.perf_counter(), time.process_time()
        status, _answer = await client.post("/api/v1/namespaces/ours/pods", {"dryRun": "All"}, pod)
        assert status == HTTPStatus.CREATED
        clock.append(time.perf_counter() - start)
        processor.append(time.process_time() - before)
    await client.close()
    return statistics.median(clock[1:]), statistics.median(processor[1:])


async def _configuration(kubeconfig: Path) -> Configuration:
    found = Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=found)
    return found


def main() -> None:
    """Start servers in turns and print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(
            LocalCluster(folder / "cluster", fleet="single", pods=Pods.RUN)
        )
        both = [
            Starts(stack.enter_context(hub_on(cluster, folder, name, more)))
            for name, more in (("stock", ""), ("ours", OURS))
        ]
        for number in range(RUNS + 1):
            for starts in both:
                starts.once(f"user{number}")
        dry = asyncio.run(_dry_runs(cluster.kubeconfig))
        stock, ours = (
            [statistics.median(times[1:]) * 1000 for times in (each.clock, each.processor)]
            for each in both
        )
    print("| median of a start, in ms | KubeSpawner | one dry run | GPUSpawner | ratio | to both |")
    print("| --- |" + " ---: |" * 5)
    rows = zip(("by the clock", "hub's processor"), stock, dry, ours, strict=True)
    for name, theirs, asked, mine in rows:
        both_ms = theirs + asked * 1000
        figures = f"{theirs:.1f} | {asked * 1000:.1f} | {mine:.1f}"
        print(f"| {name} | {figures} | {mine / theirs:.3f} | {mine / both_ms:.3f} |")
    print(f"{RUNS} starts each.")


if __name__ == "__main__":
    main()
