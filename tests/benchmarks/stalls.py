"""Measures how long a hub's event loop is held: `python -m tests.benchmarks.stalls [NODES PODS]`.

A real hub reads a real API server with as many nodes and pods, lists them again, and follows a
burst of changes, while somebody requests its login page. The hub measures itself. Its figures are
next to those of a hub with KubeSpawner alone, which is idle or shares the machine with a transfer
of the same pages; it asserts nothing.
"""

from __future__ import annotations

import http.client
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from localcluster import LocalCluster, Pods, bulk
from tests.benchmarks.filled import fill
from tests.benchmarks.first_list import SIZE
from tests.benchmarks.running_pods import objects, whole_pod
from tests.hub.running import RunningHub, running_hub
from tests.waiting import wait_for

BURST = 10_000
IDLE_SECONDS = 20
EVERY = 0.02
"""Seconds between two requests."""
COLLECTIONS = 3

PROBE = """
from tests.benchmarks import hub_probe
hub_probe.begin(c)
"""
STOCK = f"""
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.namespace = "default"
c.JupyterHub.log_level = "INFO"
{PROBE}
"""
OURS = STOCK + "import gpuspawner\ngpuspawner.configure(c)\n"


@dataclass(frozen=True)
class Row:
    """One situation: times of requests by the clock, and the hub's own figures, all in ms."""

    taken: list[float]
    held: float
    late: float
    collection: float


class Visitor:
    """Requests a hub's login page again and again, in a thread of its own."""

    def __init__(self, hub: RunningHub) -> None:
        requests.get(f"{hub.direct}/hub/login", timeout=60)  # the hub compiles the page's template
        self._address = urlsplit(hub.direct)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._request)
        self.times: list[float] = []

    def __enter__(self) -> Visitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _request(self) -> None:
        connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port)
        while not self._over.wait(EVERY):
            began = time.perf_counter()
            connection.request("GET", "/hub/login")
            connection.getresponse().read()
            self.times.append((time.perf_counter() - began) * 1000)
        connection.close()


def measured(hub: RunningHub, situation: Callable[[], object]) -> Row:
    """Measure a hub while *situation* lasts."""
    with Visitor(hub) as visitor:
        probe(hub, "held")
        situation()
    told = probe(hub, "held")
    return Row(visitor.times, told["held"], told["late"], told["collection"])


def collection(hub: RunningHub) -> float:
    """Return the longest of some collections of everything, in ms of processor time."""
    return max(float(probe(hub, "collection")) for _ in range(COLLECTIONS))


def probe(hub: RunningHub, what: str) -> Any:
    """Ask a hub that measures itself for something (see `hub_probe`)."""
    answer = requests.get(f"{hub.direct}/hub/probe/{what}", timeout=600)
    answer.raise_for_status()
    return answer.json() if answer.content else None


def _change(etcd_url: str, nodes: int) -> Any:
    """Change pods as fast as possible; return the last one."""
    mark = secrets.token_hex(4)
    changed: list[Any] = [whole_pod(n, n % nodes, gpus=0) for n in range(BURST)]
    for pod in changed:
        pod["metadata"]["labels"]["round"] = mark
    bulk.put(etcd_url, changed[:-1], BURST)
    bulk.put(etcd_url, changed[-1:], 1)  # see `events`
    return changed[-1]["metadata"]


def _burst(hub: RunningHub, etcd_url: str, nodes: int) -> None:
    """Change pods, and wait until the hub has seen the last change."""
    last = _change(etcd_url, nodes)
    key, mark = f"{last['namespace']}/{last['name']}", last["labels"]["round"]
    wait_for(lambda: probe(hub, f"pods/{key}").get("round") == mark, timeout=120)


def _transfer(kubeconfig: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.readers", "transfer", str(kubeconfig)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


@contextmanager
def _hub(folder: Path, kubeconfig: Path, lines: str) -> Iterator[RunningHub]:
    folder.mkdir()
    with running_hub(folder, lines, environment={"KUBECONFIG": str(kubeconfig)}) as hub:
        yield hub


def _print(name: str, row: Row, base: Row) -> None:
    late, usual = _late(row), _late(base)
    cells = [
        f"{row.held:.0f} ms",
        f"{row.late:.1f} ms",
        f"{row.collection:.0f} ms",
        f"{statistics.median(row.taken):.1f} ms",
        f"{late:.1f} ms",
        f"{late / usual:.2f}",
        str(len(row.taken)),
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _late(row: Row) -> float:
    return statistics.quantiles(row.taken, n=100)[-1]


def measure(folder: Path, kubeconfig: Path, etcd_url: str, nodes: int) -> None:
    """Print the tables for a cluster."""
    print("| | loop held | p99 | by a collection | request | p99 | ratio | requests |")
    print("| --- |" + " ---: |" * 7)
    with _hub(folder / "stock", kubeconfig, STOCK) as hub:
        base = measured(hub, lambda: time.sleep(IDLE_SECONDS))
        _print("KubeSpawner, idle", base, base)
        beside = measured(hub, lambda: _transfer(kubeconfig))
        _print("KubeSpawner, another process transfers the pages", beside, base)
        changes = measured(hub, lambda: _change(etcd_url, nodes))
        _print(f"KubeSpawner, {BURST:,} changes of pods that it doesn't read", changes, base)
        theirs = collection(hub)
    with _hub(folder / "ours", kubeconfig, OURS) as hub:
        _print("the first list", measured(hub, hub.until_it_sees_the_cluster), base)
        idle = measured(hub, lambda: time.sleep(IDLE_SECONDS))
        _print("the whole view, idle", idle, base)
        _print("a new list", measured(hub, lambda: probe(hub, "list")), base)
        changes = measured(hub, lambda: _burst(hub, etcd_url, nodes))
        _print(f"a burst of {BURST:,} changes", changes, base)
        ours = collection(hub)
    print("\nA collection of everything that Python can collect:")
    print(f"KubeSpawner {theirs:.0f} ms, with the whole view {ours:.0f} ms ({ours / theirs:.2f})")


def main() -> None:
    """Make the cluster, and measure."""
    nodes, pods = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else SIZE
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(Path(name) / "cluster", pods=Pods.LEAVE, controllers=()) as cluster,
    ):
        fill(cluster, objects(nodes, pods), nodes + pods)
        print(f"{nodes} nodes and {pods} pods\n", flush=True)
        measure(Path(name), cluster.kubeconfig, cluster.plane.etcd_url, nodes)


if __name__ == "__main__":
    main()
