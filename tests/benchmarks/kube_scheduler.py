"""kube-scheduler's own figures, measured by its own code on a cluster of `big_cluster`."""

from __future__ import annotations

import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from localcluster.cache import key, made_once
from localcluster.toolchains import go

_MODULE = Path(__file__).parents[2] / "localcluster" / "go"
_SOURCES = ("go.mod", "go.sum", "schedulerbench/main.go")


class Figures(msgspec.Struct, frozen=True):
    """What it took for one pod.

    Attributes:
        feasible: How many nodes passed all filters.
        message: The scheduler's refusal; empty when a node is feasible.
        filter_ms: Milliseconds of all filters over all nodes, each round.
        algorithm_ms: Milliseconds of the whole algorithm, each round: it stops filtering once it
            has enough nodes, then scores them; or it tries preemption.
    """

    feasible: int
    message: str
    filter_ms: list[float]
    algorithm_ms: list[float]


@dataclass(frozen=True)
class Measured:
    """One run: figures by probe, and the heap in use with the cluster loaded, in bytes."""

    figures: dict[str, Figures]
    resident_bytes: int


def program() -> Path:
    """Return the program that measures, built into the cache first if need be (10 s)."""
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


def measure(cluster: Path, rounds: int = 15) -> Measured:
    """Measure each probe of the file that `big_cluster.write` wrote."""
    done = subprocess.run([program(), cluster, str(rounds)], stdout=subprocess.PIPE, check=True)
    said = msgspec.json.decode(done.stdout, type=dict[str, msgspec.Raw])
    resident = msgspec.json.decode(said.pop("resident_bytes"), type=int)
    del said["cpus"]
    return Measured(
        {name: msgspec.json.decode(raw, type=Figures) for name, raw in said.items()}, resident
    )


def percentile(values: list[float], percent: int) -> float:
    """Return the value below which so many percent of the values lie."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
