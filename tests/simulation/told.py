"""How many people in line are told how long others waited, and how often it is true for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import Ticket
from gpuspawner.line.usual_waits import UsualWait, Waits
from tests.simulation.cluster import Cluster
from tests.simulation.replay import play
from tests.simulation.ways import InLine
from tests.simulation.workloads import WEEK, Workload, university


@dataclass
class Told:
    """What people were told when they joined the line, and for how many seconds they waited."""

    waits: list[tuple[UsualWait | None, float]] = field(default_factory=list)

    def share(self) -> float:
        """Return the share of those who were told anything."""
        return len(self._told()) / len(self.waits)

    def covered(self) -> float:
        """Return the share of these whose wait was in the range."""
        return 1 - self.shorter() - self.longer()

    def shorter(self) -> float:
        """Return the share of these who waited less."""
        return sum(wait < 60 * it.low for it, wait in self._told()) / len(self._told())

    def longer(self) -> float:
        """Return the share of these who waited longer."""
        return sum(wait > 60 * it.high for it, wait in self._told()) / len(self._told())

    def width(self) -> float:
        """Return the median of the minutes from one end of a range to the other."""
        return median(it.high - it.low for it, _ in self._told())

    def _told(self) -> list[tuple[UsualWait, float]]:
        return [(it, wait) for it, wait in self.waits if it is not None]


class Telling(InLine):
    """Our line, which tells newcomers how long it takes; only of those who are served, and wait."""

    def __init__(self, cluster: Cluster, told: Told) -> None:
        super().__init__(cluster)
        self._told = told
        self._waits = Waits()
        self._new: dict[Key, Ticket] = {}
        self._usual: dict[Key, UsualWait | None] = {}

    def come(self, ticket: Ticket) -> None:
        super().come(ticket)
        self._new[ticket.key] = ticket

    def leave(self, ticket: Ticket) -> None:
        super().leave(ticket)
        self._waits.leave(ticket.key)

    def served(self) -> list[Ticket]:
        found, now = super().served(), self._cluster.now
        for it in found:
            if self._new.pop(it.key, None) is None:  # else, it never waited
                self._told.waits.append((self._usual.pop(it.key), now - it.since))
                self._waits.call(it.key, now)
        for it in self._new.values():
            self._waits.join(it.key, it.needs, it.since)
            self._usual[it.key] = self._waits.usual(it.needs, now)
        self._new.clear()
        return found


def weeks(seed: int, count: int = 4) -> Workload:
    """Return some of the university's weeks, one after the other, so that there are waits to tell.

    Args:
        seed: Of no two seeds are any weeks the same.
        count: How many weeks.
    """
    made = [university(count * seed + number) for number in range(count)]
    visits = (
        replace(it, person=f"{number}-{it.person}", at=it.at + number * WEEK)
        for number, week in enumerate(made)
        for it in week.visits
    )
    return Workload(f"{count} weeks of a university", made[0].nodes, tuple(visits))


def told(workload: Callable[[int], Workload], seeds: Iterable[int]) -> Told:
    """Play a workload with each seed in our line."""
    found = Told()
    for made in map(workload, seeds):
        play(made.nodes, made.visits, lambda cluster: Telling(cluster, found))
    return found
