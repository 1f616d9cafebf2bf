"""Plays people who ask for servers, in virtual time."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import inf

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import Ticket
from tests.simulation.cluster import GPU, Cluster, ticket
from tests.simulation.ways import Way


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody asks for a server, and uses it for a while once it runs; times are in seconds.

    Attributes:
        lifetime: After how long it is ended, which is known before; None for never.
        patience: After how long without a server they give up.
    """

    person: str
    at: float
    gpus: int
    seconds: float
    model: str = ""
    lifetime: float | None = None
    patience: float = inf

    @property
    def lasts(self) -> float:
        """How long the server runs."""
        return self.seconds if self.lifetime is None else min(self.seconds, self.lifetime)


@dataclass
class Use:
    """GPU seconds: those in which a server had the GPU, of those that there were."""

    used: float = 0.0
    there: float = 0.0

    def add(self, used: float, there: float) -> None:
        self.used += used
        self.there += there

    @property
    def share(self) -> float:
        return self.used / self.there if self.there else 0.0


@dataclass
class Outcome:
    """What became of all visits.

    Attributes:
        waits: In seconds, of those who got a server, by number of GPUs.
        gave_up: How many gave up, by number of GPUs.
        unserved: How many still waited when nothing could happen any more.
        use: From the first visit to the last.
        contended: As `use`, of the times at which somebody waited.
    """

    waits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    gave_up: Counter[int] = field(default_factory=Counter)
    unserved: int = 0
    use: Use = field(default_factory=Use)
    contended: Use = field(default_factory=Use)


class _Kind(IntEnum):
    """What happens; of what happens at the same time, the smaller comes first."""

    END = 0
    COME = 1
    GIVE_UP = 2


def play(
    nodes: Iterable[tuple[str, str, int]],
    visits: Sequence[Visit],
    way_of: Callable[[Cluster], Way],
) -> Outcome:
    """Play all visits in one way."""
    return _Play(Cluster(nodes), visits, way_of).outcome()


class _Play:
    def __init__(
        self, cluster: Cluster, visits: Sequence[Visit], way_of: Callable[[Cluster], Way]
    ) -> None:
        self._cluster = cluster
        self._way = way_of(cluster)
        self._gpus = cluster.free_gpus
        self._visits = {("hub", it.person): it for it in visits}
        assert len(self._visits) == len(visits), "two visits of one name"
        self._last = max((it.at for it in visits), default=0.0)
        cluster.now = min((it.at for it in visits), default=0.0)
        self._waiting: dict[Key, Ticket] = {}
        self._agenda = [(it.at, _Kind.COME, key) for key, it in self._visits.items()]
        heapq.heapify(self._agenda)
        self._outcome = Outcome()

    def outcome(self) -> Outcome:
        while (now := self._next()) < inf:
            self._pass(now)
            while self._agenda and self._agenda[0][0] <= now:
                _, kind, key = heapq.heappop(self._agenda)
                self._happens(kind, key)
            self._serve()
        self._outcome.unserved = len(self._waiting)
        return self._outcome

    def _next(self) -> float:
        look = self._way.next_look() if self._waiting else inf
        return min(look, self._agenda[0][0] if self._agenda else inf)

    def _pass(self, now: float) -> None:
        cluster, outcome = self._cluster, self._outcome
        seconds = now - cluster.now
        used = (self._gpus - cluster.free_gpus) * seconds
        if now <= self._last:
            outcome.use.add(used, self._gpus * seconds)
        if self._waiting:
            outcome.contended.add(used, self._gpus * seconds)
        cluster.now = now

    def _happens(self, kind: _Kind, key: Key) -> None:
        if kind is _Kind.END:
            self._cluster.end(key)
        elif kind is _Kind.COME:
            self._comes(key)
        elif key in self._waiting:
            self._way.leave(self._waiting.pop(key))
            self._outcome.gave_up[self._visits[key].gpus] += 1

    def _comes(self, key: Key) -> None:
        it = self._visits[key]
        asked = ticket(it.person, it.gpus, it.at, model=it.model, lifetime=it.lifetime)
        assert self._cluster.possible(asked), "no node is large enough"
        self._waiting[key] = asked
        self._way.come(asked)
        if it.patience < inf:
            heapq.heappush(self._agenda, (it.at + it.patience, _Kind.GIVE_UP, key))

    def _serve(self) -> None:
        now = self._cluster.now
        for served in self._way.served():
            del self._waiting[served.key]
            self._outcome.waits[served.requests[GPU]].append(now - served.since)
            ends = now + self._visits[served.key].lasts
            heapq.heappush(self._agenda, (ends, _Kind.END, served.key))
