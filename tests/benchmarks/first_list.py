"""Measures a view's first list: `python -m tests.benchmarks.first_list [NODES PODS]`.

It reads a real API server with as many nodes and pods. It prints figures next to those of the plain
transfer of the same pages and of other ways to read them, each in its own process; it asserts
nothing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from localcluster import LocalCluster, Pods
from tests.benchmarks import events, readers
from tests.benchmarks.filled import fill
from tests.benchmarks.running_pods import objects

SIZE = (5_000, 150_000)

NAMES = {
    "transfer": "plain transfer, packed, thrown away",
    "unpacked": "plain transfer, not packed, thrown away",
    "view": "the live view",
    "reflector": "KubeSpawner's reflector (pods alone)",
    "json": "json.loads, kept",
    "typed": "kubernetes-asyncio's types (10,000 pods)",
}


def _alone(module: str, *arguments: object) -> bytes:
    """Run a module in its own process and return the last line that it prints."""
    command = [sys.executable, "-m", f"tests.benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.decode())
    return done.stdout.splitlines()[-1]


def _read(name: str, kubeconfig: Path) -> readers.Figures:
    return msgspec.json.decode(_alone("readers", name, kubeconfig), type=readers.Figures)


def _row(name: str, figures: readers.Figures, base: readers.Figures) -> str:
    cells = [
        f"{figures.seconds:.1f} s",
        f"{figures.seconds / base.seconds:.2f}",
        f"{figures.processor:.1f} s",
        f"{figures.held:.0f} / {figures.stall:.0f} ms",
        f"{figures.kept / 2**20:.0f} MiB",
        f"{figures.kept / figures.objects:,.0f} B" if base is not figures else "",
    ]
    return f"| {NAMES[name]} | " + " | ".join(cells) + " |"


def _print_lists(kubeconfig: Path) -> None:
    print("| | by the clock | ratio | processor | loop held / stalled | kept | an object |")
    print("| --- |" + " ---: |" * 6)
    _read("transfer", kubeconfig)  # the API server's caches fill
    base = _read("transfer", kubeconfig)
    print(_row("transfer", base, base), flush=True)
    for name in list(NAMES)[1:]:
        print(_row(name, _read(name, kubeconfig), base), flush=True)
    print(f"({base.objects / 1e6:.0f} MB of JSON)", flush=True)


def _print_events(kubeconfig: Path, etcd_url: str, nodes: int) -> None:
    answer = _alone("events", kubeconfig, etcd_url, nodes)
    figures = msgspec.json.decode(answer, type=events.Figures)
    print("\n| an event, in µs of processor time | bytes thrown away | the view | of that ours |")
    print("| --- |" + " ---: |" * 3)
    for name, plain, ours in (
        (f"{events.BURST:,} in a burst", figures.plain_burst, figures.burst),
        (f"{events.ALONE} one by one", figures.plain_alone, figures.alone),
    ):
        print(f"| {name} | {plain:.0f} | {ours:.0f} | {ours - plain:.0f} |")
    if figures.plain_ends:
        print(f"The API server ended the plain watch {figures.plain_ends} times as too slow.")
    print(
        f"A new list holds the loop {figures.relist_held:.0f} ms at most "
        f"({figures.relist_stall:.0f} ms by the clock)."
    )


def main() -> None:
    """Make the cluster and print the tables."""
    nodes, pods = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else SIZE
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder) / "cluster", pods=Pods.LEAVE, controllers=()) as cluster,
    ):
        began = time.monotonic()
        fill(cluster, objects(nodes, pods), nodes + pods)
        seconds = time.monotonic() - began
        print(f"{nodes} nodes and {pods} pods, put in {seconds:.0f} s\n", flush=True)
        _print_lists(cluster.kubeconfig)
        _print_events(cluster.kubeconfig, cluster.plane.etcd_url, nodes)


if __name__ == "__main__":
    main()
