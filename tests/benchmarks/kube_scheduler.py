"""Compares our evaluation with kube-scheduler's code on the same objects in the same run.

Run it with ``python -m tests.benchmarks.kube_scheduler [NODES]``; it prints figures and ratios and
asserts nothing. The scheduler filters on all cores; we evaluate on one. Our times include the
reasons of all nodes and the message.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import evaluate
from localcluster.cache import key, made_once
from localcluster.toolchains import go
from tests.benchmarks.clusters import cluster, gpu_request, objects, worst_request
from tests.benchmarks.evaluation import first_time, whole_answer
from tests.benchmarks.evaluation import measure as timed

_MODULE = Path(__file__).parents[2] / "localcluster" / "go"
_SOURCES = ("go.mod", "go.sum", "schedulerbench/main.go")

PROBES = {
    "one GPU of one model": gpu_request(),
    "one GPU of any model": gpu_request(None),
    "spread and affinities": worst_request(),
}
for _number, _pod in enumerate(PROBES.values()):
    _pod["metadata"] |= {"name": f"jupyter-new-{_number}", "uid": f"new-{_number}"}


class Times(msgspec.Struct, frozen=True):
    """Milliseconds of each round, by the clock and as processor time of all cores."""

    wall_ms: list[float]
    cpu_ms: list[float]

    @property
    def median(self) -> float:
        """The median of the processor time, which other processes disturb least."""
        return statistics.median(self.cpu_ms)

    @property
    def best(self) -> float:
        """The shortest time by the clock."""
        return min(self.wall_ms)


class Figures(msgspec.Struct, frozen=True):
    """The scheduler's figures for one pod.

    Attributes:
        feasible: How many nodes passed all filters.
        message: The scheduler's refusal; empty when a node is feasible.
        filter: Times of all filters over all nodes.
        algorithm: Times of the whole algorithm: it stops filtering once it has enough nodes and
            scores them; or it tries preemption.
    """

    feasible: int
    message: str
    filter: Times
    algorithm: Times


@dataclass(frozen=True)
class Measured:
    """One run: the figures of each pod, and the heap in bytes with the cluster loaded."""

    figures: dict[str, Figures]
    heap_bytes: int


def program() -> Path:
    """Return the program that measures; build it into the cache first (10 s) if it isn't there."""
    toolchain = go()
    sources = [(_MODULE / each).read_bytes() for each in _SOURCES]

    def build(directory: Path) -> None:
        flags = ["-trimpath", "-ldflags", "-s -w", "-o", directory / "schedulerbench"]
        subprocess.run(
            [toolchain.command, "build", *flags, "./schedulerbench"],
            cwd=_MODULE,
            env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
            check=True,
        )

    made = made_once(f"schedulerbench/{key(toolchain.version, *sources)}", build)
    return made / "schedulerbench"


def write(path: Path, nodes: int, *, full: bool) -> None:
    """Write the cluster of `clusters.cluster` and the pods to place as one JSON file."""
    made: dict[str, list[bytes]] = {"Node": [], "Pod": []}
    for kind, raw in objects(*size(nodes), full):
        made[kind].append(raw)
    namespaces = [{"metadata": {"name": f"team-{number}"}} for number in range(20)]
    with path.open("wb") as out:
        out.write(b'{"nodes":[' + b",".join(made["Node"]))
        out.write(b'],"pods":[' + b",".join(made["Pod"]))
        out.write(b'],"namespaces":' + msgspec.json.encode(namespaces))
        out.write(b',"probes":' + msgspec.json.encode(PROBES) + b"}")


def size(nodes: int) -> tuple[int, int, int]:
    """Return the numbers of nodes, GPU nodes and pods for a cluster of so many nodes."""
    return nodes, nodes // 5, nodes * 30


def measure(cluster_file: Path, rounds: int = 30) -> Measured:
    """Measure the scheduler on a file that `write` wrote."""
    command = [program(), cluster_file, str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    said = msgspec.json.decode(done.stdout, type=dict[str, msgspec.Raw])
    heap = msgspec.json.decode(said.pop("heap_bytes"), type=int)
    return Measured({name: msgspec.json.decode(said[name], type=Figures) for name in PROBES}, heap)


def rows(nodes: int, *, full: bool) -> Iterator[str]:
    """Measure the scheduler and us on one cluster; yield the table's rows."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json"
        write(path, nodes, full=full)
        theirs = measure(path)
    state = cluster(*size(nodes), full=full)
    gc.collect()
    for name, plain in PROBES.items():
        pod, figures = convert("Pod", plain), theirs.figures[name]
        verdict = evaluate(state, pod)
        if (len(verdict.feasible), verdict.condition_message) != (
            figures.feasible,
            figures.message,
        ):
            raise RuntimeError(f"{name}: {verdict} beside {figures}")
        again, _ = timed(partial(whole_answer, state, pod), 30)
        first, _ = timed(partial(first_time, state, pod), 30)
        filters, whole = figures.filter, figures.algorithm
        yield (
            f"| {name}: {verdict.outcome} ({figures.feasible} nodes) "
            f"| {filters.median:.1f} ({filters.best:.1f}) | {whole.median:.1f} ({whole.best:.1f}) "
            f"| {first:.1f} | {again:.2f} "
            f"| {filters.median / first:.1f} | {filters.median / again:.1f} |"
        )
    yield f"(kube-scheduler's heap with the cluster loaded: {theirs.heap_bytes / 2**20:.0f} MiB)"


def main() -> None:
    """Print the table."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(
        f"Medians of processor time in ms (best by the clock) at {nodes} nodes, {nodes * 30} pods, "
        f"{os.cpu_count()} cores\n"
        "| pod | its filters | its whole algorithm | ours, first of its kind | ours "
        "| filters / ours first | filters / ours |\n| --- |" + " ---: |" * 6
    )
    for full in (False, True):
        for row in rows(nodes, full=full):
            print(row, flush=True)


if __name__ == "__main__":
    main()
