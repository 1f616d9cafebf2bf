"""What one change costs the line: `python -m tests.benchmarks.line`.

1,250 nodes with 10,000 GPUs of three models, all in use, and up to 100,000 people in line. They ask
for 1, 2, 4 or 8 GPUs of one model or of any, and some have lifetimes: 48 lanes. After each change,
everybody is served whose turn it is; only the line is measured, with the nodes of the simulation.
The baseline follows the same rules, but finds out anew after each change who collects where.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable

from gpuspawner.line.order import Serving
from gpuspawner.line.tickets import Line, Ticket
from tests.simulation.cluster import Cluster, ticket

PEOPLE, NODES, CHANGES, BASELINE = (1_000, 10_000, 100_000), 1_250, 6_000, 50
MODELS = ("t4", "a100", "h100")
SIZES = random.Random(1).sample([1] * 70 + [2] * 12 + [4] * 8 + [8] * 10, 100)
LIFETIMES = (None, None, 3_600.0, 36_000.0)


class Crowd:
    """People in line for a full cluster; a second passes between two changes.

    Attributes:
        seconds: How long the changes took, by kind.
    """

    def __init__(self, people: int) -> None:
        self.cluster = Cluster((f"n{i}", MODELS[i % 3], 8) for i in range(NODES))
        self.line = Line()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._serving = Serving(self.line)
        self._dice = random.Random(1)
        self._came: list[Ticket] = []
        while len(self.line) < people:
            self._joins(self._newcomer())
        gc.collect()  # so that no change pays for those before it

    def changes(self, count: int) -> None:
        """Let so many things happen; as many people come as are served or leave."""
        kinds = (self.a_server_ends, self.somebody_joins, self.somebody_leaves, self.away_and_back)
        for kind in self._dice.choices(kinds, (4, 4, 1, 1), k=count):
            self.cluster.now += 1
            kind()

    def a_server_ends(self) -> None:
        self.cluster.end(self._dice.choice(tuple(self.cluster.servers)))
        self._measure("a server ends", lambda: None)

    def somebody_joins(self) -> None:
        newcomer = self._newcomer()
        self._measure("somebody joins", lambda: self._serving.join(newcomer))

    def somebody_leaves(self) -> None:
        one = self._somebody()
        self._measure("somebody leaves", lambda: self._serving.leave(one))

    def away_and_back(self) -> None:
        one = self._somebody()
        self._measure("somebody steps aside", lambda: self._serving.hold_back(one))
        self._measure("somebody steps back", lambda: self._serving.let_back(one))

    def anew(self) -> None:
        """Serve without what is known from before."""
        self.cluster.end(self._dice.choice(tuple(self.cluster.servers)))
        self._serving = Serving(self.line)
        self._measure("baseline", lambda: None)

    def _measure(self, name: str, change: Callable[[], None]) -> None:
        began = time.perf_counter()
        change()
        self._serving.serve(self.cluster, self.cluster.now)
        self.seconds[name].append(time.perf_counter() - began)

    def _joins(self, newcomer: Ticket) -> None:
        self.cluster.now += 0.01
        self._serving.join(newcomer)
        self._serving.serve(self.cluster, self.cluster.now)

    def _newcomer(self) -> Ticket:
        made = ticket(
            f"p{len(self._came)}",
            self._dice.choice(SIZES),
            self.cluster.now,
            model=self._dice.choice(("", *MODELS)),
            lifetime=self._dice.choice(LIFETIMES),
        )
        self._came.append(made)
        return made

    def _somebody(self) -> Ticket:
        """Return anybody in line."""
        while self.line.find((it := self._dice.choice(self._came)).key) is None:
            pass
        return it


def main() -> None:
    """Print the table."""
    print(f"{NODES} nodes with {8 * NODES} GPUs")
    print("| people in line | change | mean | 99th percentile | longest | ratio to baseline |")
    print("| ---: | --- |" + " ---: |" * 4)
    for people in PEOPLE:
        crowd = Crowd(people)
        crowd.changes(CHANGES)
        for _ in range(BASELINE):
            crowd.anew()
        baseline = statistics.mean(crowd.seconds["baseline"])
        for name, seconds in crowd.seconds.items():
            mean = statistics.mean(seconds)
            late = statistics.quantiles(seconds, n=100, method="inclusive")[-1]
            told = " | ".join(f"{1000 * it:.3f} ms" for it in (mean, late, max(seconds)))
            print(f"| {people:,} | {name} | {told} | {mean / baseline:.4f} |")


if __name__ == "__main__":
    main()
