"""Whose servers are played: a production cluster's trace, and a made-up week at a university."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.scheduling.live.trace import read
from tests.simulation.replay import Visit

HOUR = 3600.0
DAY = 24 * HOUR
WEEK = 7 * DAY

TRACE_BEGINS = 115 * DAY
"""The trace has all pods from about here on; of those before, only the few that still ran."""
EVERY = 130
"""One of so many nodes of the trace is played. So 85 to 95 % of the GPUs are in use on average, if
none is kept free for anybody (`BestEffort`)."""
TENTHS = (600, 803, 972, 1220, 1573, 2172, 3133, 4159, 6883, 15004, 12 * HOUR)
"""The deciles of the seconds that pods of the trace ran, of those that had a GPU for ten minutes or
more. The last is 12 hours instead: people go home."""
PATIENCE = 2 * HOUR
"""After how long half of the people have given up, where they do: a guess."""
LIFETIMES = tuple(hours * HOUR for hours in (1, 2, 4, 8, 12, 24))


@dataclass(frozen=True)
class Workload:
    """Nodes (name, model, GPUs) and visits."""

    name: str
    nodes: tuple[tuple[str, str, int], ...]
    visits: tuple[Visit, ...]

    @property
    def gpus(self) -> int:
        return sum(gpus for _, _, gpus in self.nodes)


def impatient(workload: Workload, seed: int) -> Workload:
    """Return a workload whose people give up after a while."""
    dice = random.Random(seed)
    visits = (replace(it, patience=PATIENCE * dice.lognormvariate(0, 1)) for it in workload.visits)
    return replace(workload, visits=tuple(visits))


def with_lifetimes(workload: Workload) -> Workload:
    """Return a workload whose servers all have a lifetime, which people choose so that it lasts."""
    visits = (
        replace(it, lifetime=next((most for most in LIFETIMES if it.lasts <= most), None))
        for it in workload.visits
    )
    return replace(workload, visits=tuple(visits))


def trace(seed: int, every: int = EVERY) -> Workload:
    """Return the trace's last five weeks as one week, on a few of its nodes.

    The trace's own cluster was never full. So its weeks are played at the same time, and a seed
    says on which nodes, which are of all sizes as in the trace.

    Raises:
        FileNotFoundError: The trace isn't there.
    """
    rows = [row for row in read("nodes") if int(row["gpu"])]
    rows.sort(key=lambda row: (int(row["gpu"]), row["model"], row["sn"]))
    first = random.Random(seed).randrange(every)
    nodes = tuple((row["sn"], row["model"], int(row["gpu"])) for row in rows[first::every])
    return Workload("a production cluster's trace", nodes, tuple(_of_trace()))


def _of_trace() -> Iterator[Visit]:
    """Yield the pods that ran and had GPUs.

    A share of a GPU counts as a whole one. What ran for longer than a day ends after a day, as
    servers of a hub do that has lifetimes or ends idle servers.
    """
    for row in read("pods"):
        at = float(row["creation_time"])
        if int(row["num_gpu"]) and row["scheduled_time"] and at >= TRACE_BEGINS:
            seconds = float(row["deletion_time"]) - float(row["scheduled_time"])
            yield Visit(row["name"], at % WEEK, int(row["num_gpu"]), min(seconds, DAY))


def university(seed: int, people: int = 600) -> Workload:
    """Return a week: few GPUs, lectures in the morning, theses at night."""
    dice = random.Random(seed)
    nodes = [(f"t4-{i}", "t4", 4) for i in range(6)] + [(f"a100-{i}", "a100", 8) for i in range(2)]
    visits = [it for n in range(people) for it in _week_of(f"p{n:04}", dice)]
    return Workload("a university's week", tuple(nodes), tuple(visits))


def _week_of(person: str, dice: random.Random) -> Iterator[Visit]:
    """Yield a student's visits, or those of somebody who writes a thesis: longer and larger."""
    writes_a_thesis = dice.random() < 0.15
    for day in range(5):
        if dice.random() > (0.5 if writes_a_thesis else 0.35):
            continue
        start = day * DAY + dice.triangular(8, 20, 18 if writes_a_thesis else 10) * HOUR
        gpus = dice.choice((1, 2, 2, 4, 8)) if writes_a_thesis else 1
        seconds = _seconds(dice) * (2 if writes_a_thesis else 1)
        lifetime = None if writes_a_thesis else 3 * HOUR
        model = "a100" if gpus > 4 else dice.choice(("", "t4")) if gpus == 1 else ""
        yield Visit(f"{person}-{day}", start, gpus, seconds, model, lifetime)


def _seconds(dice: random.Random) -> float:
    """Return how long somebody uses a server, as long as pods of the trace ran."""
    tenth = dice.randrange(len(TENTHS) - 1)
    low, high = TENTHS[tenth : tenth + 2]
    return float(low * (high / low) ** dice.random())
