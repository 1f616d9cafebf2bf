"""Replays a production cluster's trace on the real scheduler, and compares it with our verdicts.

Run it with `python -m tests.scheduling.live.trace`. It prints a table. Only the order of the
trace's events matters, not their times.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from tests.fixtures.bare_cluster import bare
from tests.scheduling.generators.case import GPU
from tests.scheduling.live.api import Plain
from tests.scheduling.live.comparing import state_of
from tests.scheduling.live.report import world_in
from tests.scheduling.live.world import Answer, World

DATA = Path(__file__).parents[2] / "data" / "alibaba-gpu-v2023"
NAMESPACE = "hub"


@dataclass(frozen=True)
class Scenario:
    """One way to replay the trace.

    Attributes:
        title: The row's name in the table.
        every: Use every n-th node only; 1 for all nodes.
        departures: Whether pods end as in the trace.
    """

    title: str
    every: int = 1
    departures: bool = True


SCENARIOS = (
    Scenario("all nodes, as it happened"),
    Scenario("all nodes, nobody leaves", departures=False),
    Scenario("every 60th node, as it happened", every=60),
)


@dataclass
class Figures:
    """The counts of a replay; `wrong` describes each wrong verdict."""

    requests: int = 0
    pending: int = 0
    refused_rightly: int = 0
    same_message: int = 0
    asked_again: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def read(name: str) -> list[dict[str, str]]:
    """Read one of the trace's files."""
    with gzip.open(DATA / f"{name}.csv.gz", "rt", newline="") as lines:
        return list(csv.DictReader(lines))


def node(row: dict[str, str]) -> Plain:
    allocatable = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
    if int(row["gpu"]):
        allocatable[GPU] = row["gpu"]
    return {
        "metadata": {"name": row["sn"], "labels": {"model": row["model"]}},
        "spec": {},
        "status": {"capacity": allocatable, "allocatable": allocatable},
    }


def pod(row: dict[str, str]) -> Plain:
    resources = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    gpus = {GPU: row["num_gpu"]} if int(row["num_gpu"]) else {}
    asked = {"requests": resources | gpus, "limits": gpus}
    return {
        "metadata": {"name": row["name"], "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": asked}]},
    }


def events(rows: list[dict[str, str]], departures: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ("comes" or "goes", row) in the trace's order; at equal times, "goes" comes first."""
    order = [(int(row["creation_time"]), 1, index) for index, row in enumerate(rows)]
    if departures:
        order += [
            # One pod of the trace ends before it starts.
            (max(int(row["deletion_time"]), int(row["creation_time"]) + 1), 0, index)
            for index, row in enumerate(rows)
        ]
    for _, comes, index in sorted(order):
        yield ("comes" if comes else "goes"), rows[index]


class Replay:
    """Keeps our own state in step with the scheduler's decisions."""

    def __init__(self, world: World, state: ClusterState) -> None:
        self.world = world
        self.state = state
        self.figures = Figures()
        self._there: set[str] = set()

    async def comes(self, row: dict[str, str]) -> None:
        """Evaluate and create a pod; keep it if the scheduler binds it, else delete it."""
        figures, wanted = self.figures, pod(row)
        verdict = evaluate(self.state, wanted)
        answer = await self.world.schedule(wanted)
        if (verdict.outcome is Outcome.FITS) is not bool(answer.node):
            # The scheduler may not have seen the last pod end yet, so its second answer counts.
            figures.asked_again += 1
            await self.world.remove(wanted)
            await asyncio.sleep(0.2)
            answer = await self.world.schedule(wanted)
        figures.requests += 1
        figures.pending += not answer.node
        if (verdict.outcome is Outcome.FITS) is not bool(answer.node):
            figures.wrong.append(f"{row['name']}: {verdict.outcome} beside {answer}")
        elif not answer.node:
            figures.refused_rightly += 1
            figures.same_message += answer.message.startswith(verdict.message)
        await self._keep(wanted, answer)

    async def _keep(self, wanted: Plain, answer: Answer) -> None:
        if not answer.node:
            await self.world.remove(wanted)
            return
        self._there.add(wanted["metadata"]["name"])
        bound = wanted | {"spec": wanted["spec"] | {"nodeName": answer.node}}
        self.state.put(convert("Pod", bound))

    async def goes(self, row: dict[str, str]) -> None:
        """Delete a pod if it was bound."""
        if row["name"] in self._there:
            self._there.discard(row["name"])
            await self.world.remove(pod(row))
            self.state.remove("Pod", NAMESPACE, row["name"])


async def replay(world: World, scenario: Scenario, most: int | None = None) -> Figures:
    """Replay a scenario, or its first pods, in a world that is empty before and after.

    Args:
        world: The world with the real scheduler.
        scenario: How to replay.
        most: The maximum number of pods; None for all.
    """
    nodes = [node(row) for row in read("nodes")[:: scenario.every]]
    rows = read("pods")[:most]
    await world.fill(nodes)
    objects = await world.listed()
    state = state_of(objects)
    run = Replay(world, state)
    started = time.monotonic()
    for what, row in events(rows, scenario.departures):
        await (run.comes(row) if what == "comes" else run.goes(row))
    run.figures.seconds = time.monotonic() - started
    await world.clear()
    return run.figures


def table(results: dict[str, Figures]) -> str:
    """Return the counts as a Markdown table."""
    columns = (
        "replay",
        "requests",
        "would have been Pending",
        "of those we refuse",
        "we refuse wrongly",
        "we let through wrongly",
    )
    lines = [" | ".join(["", *columns, ""]).strip(), "| --- |" + " ---: |" * (len(columns) - 1)]
    for title, each in results.items():
        missed = each.pending - each.refused_rightly
        wrongly = len(each.wrong) - missed
        lines.append(
            f"| {title} | {each.requests:,} | {each.pending:,} | {each.refused_rightly:,} "
            f"| {wrongly} | {missed} |"
        )
    return "\n".join(lines)


async def _main(most: int | None) -> int:
    results = {}
    with tempfile.TemporaryDirectory() as directory, bare(Path(directory)) as cluster:
        async with world_in(cluster) as world:
            for scenario in SCENARIOS:
                results[scenario.title] = each = await replay(world, scenario, most)
                print(
                    f"{scenario.title}: {each.requests} requests in {each.seconds:.0f} s, "
                    f"{each.same_message} of {each.refused_rightly} messages word for word, "
                    f"{each.asked_again} asked twice",
                    *each.wrong,
                    sep="\n  ",
                    flush=True,
                )
    print(table(results))
    return sum(len(each.wrong) for each in results.values())


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--most", type=int, help="replay only the first so many pods")
    raise SystemExit(asyncio.run(_main(arguments.parse_args().most)) != 0)
