"""What many plays of a workload come to, by way and by number of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean

from gpuspawner.line.order import PART
from tests.simulation.cluster import Cluster
from tests.simulation.replay import Outcome, play
from tests.simulation.ways import RELOAD_SECONDS, InLine, Way, ways
from tests.simulation.workloads import Workload, impatient, with_lifetimes

IN_LINE = "in line"


@dataclass(frozen=True)
class Result:
    """The plays of one way; in those that are *impatient*, people give up."""

    plays: Sequence[Outcome]
    impatient: Sequence[Outcome]

    def sizes(self) -> list[int]:
        """Return the numbers of GPUs that people asked for."""
        return sorted({gpus for it in self.plays for gpus in it.waits})

    def waits(self, gpus: int) -> list[float]:
        """Return the waits of all plays, in seconds."""
        return [wait for it in self.plays for wait in it.waits[gpus]]

    def mean_wait(self) -> float:
        """Return how many seconds people wait on average, whatever they asked for."""
        return mean(wait for gpus in self.sizes() for wait in self.waits(gpus))

    def nine_of_ten(self, gpus: int) -> list[float]:
        """Return for each play how many seconds nine of ten people wait at most."""
        return [quantile(it.waits[gpus], 0.9) for it in self.plays if it.waits[gpus]]

    def use(self) -> float:
        """Return the share of the GPUs in use, on average."""
        return mean(it.use.share for it in self.plays)

    def contended_use(self) -> float:
        """Return the same of the times at which somebody waited."""
        return mean(it.contended.share for it in self.plays)

    def gave_up(self) -> float:
        """Return the share of people who gave up."""
        gone = sum(it.gave_up.total() for it in self.impatient)
        served = sum(len(waits) for it in self.impatient for waits in it.waits.values())
        return gone / (gone + served)


Results = Mapping[str, Result]
"""By way."""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that such a share of the values doesn't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def results(
    workload: Callable[[int], Workload],
    seeds: Iterable[int],
    reload_seconds: float = RELOAD_SECONDS,
    part: float = PART,
) -> Results:
    """Play a workload in each way, with each seed twice: people wait, and people give up."""
    made = [workload(seed) for seed in seeds]
    plays = _plays(made, reload_seconds, part)
    those = _plays([impatient(it, seed) for seed, it in enumerate(made)], reload_seconds, part)
    return {name: Result(plays[name], those[name]) for name in plays}


def _plays(
    workloads: Sequence[Workload], reload_seconds: float, part: float
) -> dict[str, list[Outcome]]:
    known, in_line = [with_lifetimes(it) for it in workloads], partial(InLine, part=part)
    found = {
        IN_LINE: _each(workloads, in_line),
        "in line, all have lifetimes": _each(known, in_line),
    }
    return found | {name: _each(workloads, way) for name, way in ways(reload_seconds).items()}


def _each(workloads: Sequence[Workload], way: Callable[[Cluster], Way]) -> list[Outcome]:
    return [play(it.nodes, it.visits, way) for it in workloads]
