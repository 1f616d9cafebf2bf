"""Compares starts with GPUSpawner and with KubeSpawner: `python -m tests.benchmarks.spawning`.

Two real hubs on one real cluster start the same small server in turns, one with KubeSpawner and one
with GPUSpawner. It prints figures; it asserts nothing.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from localcluster import LocalCluster, Pods, rbac
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user

RUNS = 20

STOCK = """
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = {server!r}
c.KubeSpawner.delete_grace_period = 0
"""
OURS = """
import gpuspawner
c.GPUSpawner.accelerators = {{"t4": {{"node_selector": {{"kubernetes.io/hostname": "gpu-0"}}}}}}
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
        before, start = self._spent(), time.perf_counter()
        self.hub.start(user)
        self.hub.until_ready(user)
        self.clock.append(time.perf_counter() - start)
        self.processor.append(self._spent() - before)
        self.hub.stop(user)

    def _spent(self) -> float:
        stat = Path(f"/proc/{self.hub.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _hub(
    cluster: LocalCluster, folder: Path, name: str, configuration: str
) -> Iterator[RunningHub]:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    kubeconfig = rbac.hub_kubeconfig(cluster, name)
    (folder / name).mkdir()
    lines = configuration.format(namespace=name, server=single_user.COMMAND)
    environment = {"KUBECONFIG": str(kubeconfig)}
    with running_hub(folder / name, lines, environment=environment) as hub:
        yield hub


def _dry_runs(cluster: LocalCluster) -> list[float]:
    """Return the durations of some dry runs, in seconds."""
    times = []
    container = {"name": "notebook", "image": "x"}
    pod = {"metadata": {"generateName": "dry-"}, "spec": {"containers": [container]}}
    for _ in range(RUNS):
        start = time.perf_counter()
        cluster.api.create("/api/v1/namespaces/ours/pods?dryRun=All", pod)
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    """Start servers in turns and print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(
            LocalCluster(folder / "cluster", fleet="single", pods=Pods.RUN)
        )
        both = [
            Starts(stack.enter_context(_hub(cluster, folder, name, configuration)))
            for name, configuration in (("stock", STOCK), ("ours", STOCK + OURS))
        ]
        for number in range(RUNS + 1):
            for starts in both:
                starts.once(f"user{number}")
        dry = statistics.median(_dry_runs(cluster))
        stock, ours = (
            [statistics.median(times[1:]) * 1000 for times in (each.clock, each.processor)]
            for each in both
        )
    print("| median of a start, in ms | KubeSpawner | GPUSpawner | ratio | more |")
    print("| --- |" + " ---: |" * 4)
    for name, theirs, mine in zip(("by the clock", "hub's processor"), stock, ours, strict=True):
        print(f"| {name} | {theirs:.0f} | {mine:.0f} | {mine / theirs:.3f} | {mine - theirs:.0f} |")
    print(f"One dry run took {dry * 1000:.1f} ms; {RUNS} starts each.")


if __name__ == "__main__":
    main()
