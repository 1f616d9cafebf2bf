"""Runs comparisons and counts the results."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpuspawner.scheduling import evaluate, explain
from localcluster import LocalCluster
from tests.scheduling.generators import generate
from tests.scheduling.live.api import Api
from tests.scheduling.live.comparing import Comparison, compare, left_open, state_of
from tests.scheduling.live.world import World


def _a_node_says(text: str) -> Callable[[Comparison], bool]:
    def find(made: Comparison) -> bool:
        explained = explain(state_of(made.objects), made.pod)
        return any(text in reason for each in explained.reasons.values() for reason in each)

    return find


def _a_bound_pod_is_resized(made: Comparison) -> bool:
    return any(
        "resources" in status or "allocatedResources" in status
        for pod in made.objects["pods"]
        for status in pod["status"].get("containerStatuses", [])
    )


def _nothing(_made: Comparison) -> bool:
    return False


# Family to a check whether its own rule mattered in a case. Only families that the vectors lack.
AT_STAKE: dict[str, Callable[[Comparison], bool]] = {
    "preemption": lambda made: made.answer.nominated is not None,
    "nominated": lambda made: any(
        "nominatedNodeName" in pod["status"] for pod in made.objects["pods"]
    ),
    "namespaces": lambda made: (
        evaluate(state_of(made.objects), made.pod).feasible != made.verdict.feasible
    ),
    "csi_limits": _a_node_says("exceed max volume count"),
    "csi_drivers": _a_node_says("CSI driver is not installed"),
    "storage_capacity": _a_node_says("enough free storage"),
    "resize": _a_bound_pod_is_resized,
}


@dataclass
class Report:
    """Comparisons of one family.

    Attributes:
        counts: Cases that the scheduler bound, nominated and refused; cases in which the family's
            own rule mattered ("at stake"); cases that are rightly unknown ("left open").
        differences: The comparisons with a different verdict.
    """

    family: str
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Comparison] = field(default_factory=list)

    def add(self, made: Comparison) -> None:
        answer = made.answer
        self.counts["cases"] += 1
        self.counts["bound" if answer.node else "nominated" if answer.nominated else "refused"] += 1
        self.counts["at stake"] += AT_STAKE.get(self.family, _nothing)(made)
        self.counts["left open"] += left_open(made.verdict)
        if made.difference:
            self.differences.append(made)


@asynccontextmanager
async def world_in(cluster: LocalCluster) -> AsyncIterator[World]:
    """Open a world in a local cluster. Nothing else may use that cluster."""
    async with (
        Api.connect(cluster.url, cluster.token, str(cluster.ca)) as api,
        World.open(api) as world,
    ):
        yield world


async def compare_family(world: World, family: str, seeds: Iterable[int]) -> Report:
    """Compare the cases of a family for some seeds."""
    report = Report(family)
    for seed in seeds:
        report.add(await compare(world, generate(family, seed)))
    return report


KEPT = Path(tempfile.gettempdir()) / "gpuspawner-differences"


def keep(differences: Iterable[Comparison], directory: Path = KEPT) -> str:
    """Write each difference to a file that reproduces it; return a summary."""
    directory.mkdir(parents=True, exist_ok=True)
    summary = []
    for each in differences:
        path = directory / f"{each.name}.json"
        path.write_text(json.dumps(each.as_plain(), indent=1))
        summary.append(f"{each.name}: {each.difference}\n  ({path})")
    return "\n".join(summary)


def table(reports: Iterable[Report]) -> str:
    """Return the counts as a Markdown table."""
    columns = ("cases", "bound", "nominated", "refused", "at stake", "left open")
    lines = [
        f"| family | {' | '.join(columns)} | differences |",
        "| --- |" + " ---: |" * (len(columns) + 1),
    ]
    for each in reports:
        figures = [str(each.counts[column]) for column in columns]
        if each.family not in AT_STAKE:
            figures[columns.index("at stake")] = ""
        lines.append(f"| {each.family} | {' | '.join(figures)} | {len(each.differences)} |")
    return "\n".join(lines)
