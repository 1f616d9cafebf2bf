"""How costs grow with the cluster: `python -m tests.benchmarks.growth [--plot PATH]`.

The largest cluster has three times as many nodes and pods as Kubernetes supports. Each is read from
a real API server by a process of its own, which then evaluates pods. The growth is also drawn, for
the documentation. It asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import msgspec

from gpuspawner.cluster.kinds import NODES, PODS
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import ClusterState
from localcluster import LocalCluster, Pods
from tests.benchmarks.clusters import (
    HOME,
    OTHER_KINDS,
    csi_node,
    gpu_request,
    node,
    running_pod,
    worst_request,
)
from tests.benchmarks.evaluation import churn, first_time, measure, resident, whole_answer
from tests.benchmarks.filled import fill
from tests.benchmarks.growth_plot import draw
from tests.benchmarks.readers import loading, transfer

SIZES = (1_250, 5_000, 15_000)
"""Numbers of nodes; a fifth of them have GPUs, and each has 30 pods."""
PODS_EACH = 30
PICTURE = Path("docs/images/growth")
FASTER = 1.25
"""What grows by so much more than the cluster is named."""


@dataclass(frozen=True)
class Cost:
    """A cost at one size of cluster."""

    amount: float
    unit: str


Costs = Mapping[str, Cost]


def objects(nodes: int) -> Iterator[dict[str, object]]:
    """Yield nodes and pods with only the fields that the view keeps.

    A whole pod has 5.8 kB, and this machine couldn't hold the API server of the largest cluster.
    """
    for number in range(nodes):
        yield {**node(number, gpu=number < nodes // 5), "apiVersion": "v1", "kind": "Node"}
    for number in range(nodes * PODS_EACH):
        gpus = 1 if number % nodes < nodes // 5 and number // nodes < 8 else 0
        pod = running_pod(number, number % nodes, gpus=gpus)
        yield {**pod, "apiVersion": "v1", "kind": "Pod"}


async def costs(kubeconfig: Path, nodes: int) -> Costs:
    """Read the cluster and evaluate pods."""
    load = loading(kubeconfig)
    plain = await _seconds(transfer(load))
    gc.collect()
    before = resident()
    view = ClusterView(load, kinds=(NODES, PODS))
    view.start()
    seconds = await _seconds(_listed(view))
    assert len(view.state.pods) == nodes * PODS_EACH
    gc.collect()
    kept = (resident() - before) / 2**20
    state = view.state
    await view.stop()
    _complete(state, nodes)
    return {
        "plain transfer of the list": Cost(plain, "s"),
        "first list": Cost(seconds, "s"),
        "memory of the view": Cost(kept, "MiB"),
        **_changes(state, nodes),
        **_verdicts(state, nodes),
    }


async def _listed(view: ClusterView) -> None:
    """Wait for the first list; an API server that has just started may be too busy to answer."""
    while not await view.first_list(600):
        await view.changed(1)


async def _seconds(work: Awaitable[object]) -> float:
    """Return how much processor time this process needs for something."""
    began = time.process_time()
    await work
    return time.process_time() - began


def _complete(state: ClusterState, nodes: int) -> None:
    """Put what the API server of this benchmark doesn't have."""
    for kind in OTHER_KINDS:
        state.mark_known(kind)
    for kind, plain in HOME:
        state.put(convert(kind, plain))
    for number in range(nodes):
        state.put(convert("CSINode", csi_node(number)))


def _changes(state: ClusterState, nodes: int) -> Costs:
    """Measure changes of the cluster."""
    rounds = iter(range(10**6))

    def node_changes() -> None:
        plain = node(next(rounds) % nodes, gpu=False)
        state.put(convert("Node", plain | {"spec": {"unschedulable": next(rounds) % 4 < 2}}))

    return {
        "a pod comes": _median(partial(churn, state, nodes)),
        "a node changes": _median(node_changes),
    }


def _verdicts(state: ClusterState, nodes: int) -> Costs:
    """Measure verdicts, with a pod that comes before each."""
    comes = partial(churn, state, nodes)
    found = {}
    for name, plain in (
        ("one model", gpu_request()),
        ("any model", gpu_request(None)),
        ("spread and affinities", worst_request()),
    ):
        pod = convert("Pod", plain)
        whole_answer(state, pod)
        found[f"first verdict: {name}"] = _median(partial(first_time, state, pod), comes)
        found[f"later verdict: {name}"] = _median(partial(whole_answer, state, pod), comes)
    return found


def _median(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> Cost:
    return Cost(measure(work, 50, before)[0], "ms")


def measured(nodes: int) -> Costs:
    """Make a cluster, and let a process of its own read it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder) / "cluster", pods=Pods.LEAVE, controllers=()) as cluster,
    ):
        fill(cluster, objects(nodes), nodes * (1 + PODS_EACH))
        command = [sys.executable, "-m", __spec__.name, "--read", cluster.kubeconfig, str(nodes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=dict[str, Cost])


def table(found: Mapping[int, Costs]) -> Iterator[str]:
    """Yield the lines of the table, and the names of what grows faster than the cluster."""
    smallest, largest = min(found), max(found)
    heads = [f"{nodes:,} nodes, {nodes * PODS_EACH:,} pods" for nodes in found]
    yield "| processor time, memory | " + " | ".join(heads) + " | growth |"
    yield "| --- |" + " ---: |" * (len(found) + 1)
    faster = []
    for name, cost in found[smallest].items():
        cells = [f"{it[name].amount:.3g} {it[name].unit}" for it in found.values()]
        growth = found[largest][name].amount / cost.amount
        yield f"| {name} | " + " | ".join(cells) + f" | x {growth:.1f} |"
        if growth > FASTER * largest / smallest:
            faster.append(name)
    yield f"(the cluster grows x {largest / smallest:.0f})"
    yield "Grows faster than the cluster: " + (", ".join(faster) or "nothing") + "."


def main() -> None:
    """Measure all sizes, print the table and draw the picture; or read one cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, default=PICTURE)
    parser.add_argument("--read", nargs=2, metavar=("KUBECONFIG", "NODES"))
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    asked = parser.parse_args()
    if asked.read:
        kubeconfig, nodes = asked.read
        read = asyncio.run(costs(Path(kubeconfig), int(nodes)))
        sys.stdout.buffer.write(msgspec.json.encode({k: asdict(v) for k, v in read.items()}))
        return
    found = {nodes: measured(nodes) for nodes in asked.sizes}
    print("\n".join(table(found)))
    draw(found, asked.plot)


if __name__ == "__main__":
    main()
