"""How much idle GPU time is given back, and whether a job is ever stopped.

It plays a university's week minute by minute, with the very rules of `gpuspawner.use`. People
compute for some minutes and think for others, then go home and leave their servers open. Theses run
training jobs without a browser, with up to half an hour between two epochs. The exporter is down
now and then, and sometimes says 0 of a GPU that computes.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import Happened
from gpuspawner.use.idle_servers import DeviceUse, IdleStanding, Window, use_of
from tests.simulation.replay import Visit
from tests.simulation.workloads import university

MINUTE, HOUR = 60.0, 3600.0
LENGTHS = (30, 60, 120)
"""How long a GPU is idle before its owner is warned, in minutes."""
WARNING = 15
KEEPS = 2
_IDLE_PART = 0.3
"""The part of the time of servers in which nobody will compute any more."""
_PAUSE = 30
"""The longest pause between two epochs of a job, in minutes."""
_THINKS = 8
"""How long somebody thinks between two computations, in minutes, on average."""
_GAP_EVERY, _GAP = 8 * 60, 10
"""How often an exporter is down, on average, and for how many minutes."""
_ZERO = 0.01
"""Of so many looks at a GPU that computes, the exporter says 0."""
_AT_THE_PAGE = 0.7
"""How many of those who think at their notebook see a warning and keep the server."""
_POD = ("hub", "jupyter")


@dataclass(frozen=True)
class PlayedServer:
    """A server, minute by minute.

    Attributes:
        computes: Whether it computes in each minute.
        ends: From which minute on nobody computes any more.
        is_job: Whether nobody is at its page.
    """

    gpus: int
    computes: Sequence[bool]
    ends: int
    is_job: bool


@dataclass
class GivenBack:
    """What came of one length.

    Attributes:
        idle, back: GPU minutes after the last computation, and those of them that were given back.
        jobs, people: Jobs and people, and how many of them were stopped before they were done.
        warned: In how many minutes each stopped server's owner could have answered.
    """

    idle: float = 0.0
    back: float = 0.0
    jobs: int = 0
    jobs_stopped: int = 0
    people: int = 0
    people_stopped: int = 0
    kept: int = 0
    warnings: int = 0
    warned: float = 1e9


def played(visit: Visit, dice: random.Random) -> PlayedServer:
    """Play one visit of the week: a thesis runs a job, and others think and compute."""
    minutes = max(20, round(visit.lasts / MINUTE))
    is_job = visit.lifetime is None and visit.gpus > 1
    computes: list[bool] = []
    while len(computes) < minutes:
        computes += [True] * dice.randint(2, 60 if is_job else 15)
        pause = dice.uniform(0, _PAUSE) if is_job else dice.expovariate(1 / _THINKS)
        computes += [False] * round(pause)
    computes = [*computes[: minutes - 1], True]
    tail = minutes * _IDLE_PART / (1 - _IDLE_PART) * dice.expovariate(1)
    return PlayedServer(visit.gpus, [*computes, *[False] * round(tail)], minutes, is_job)


def play(server: PlayedServer, minutes: int, dice: random.Random, found: GivenBack) -> None:
    """Play one server with one length of idle, and count what came of it."""
    rule = WhenIdle(60 * minutes, 60 * minutes, 60 * WARNING, KEEPS, 60 * minutes)
    seen = deque[float | None](maxlen=minutes)
    standing, began, warned_at = IdleStanding(), datetime.fromtimestamp(0, UTC), 0.0
    stopped: int | None = None
    for minute, said in enumerate(_exported(server, dice)):
        seen.append(said)
        now = MINUTE * (minute + 1)
        known = [it for it in seen if it is not None]
        device = DeviceUse(("GPU", ""), max(known, default=0.0), len(known) / minutes)
        window = Window(rule.after, now, {_POD: [device]} if known else {})
        use = use_of(window, _POD, 1, began)
        standing, happened = standing.after(use, use, rule, now)
        if Happened.WARNED in happened:
            found.warnings, warned_at = found.warnings + 1, now
            is_there = minute < server.ends and not server.is_job
            if is_there and standing.may_keep(rule) and dice.random() < _AT_THE_PAGE:
                standing = standing.keep(rule, now)
                found.kept += 1
        if standing.may_stop(now):
            stopped = minute
            found.warned = min(found.warned, (now - warned_at) / MINUTE)
            break
    _count(server, stopped, found)


def _count(server: PlayedServer, stopped: int | None, found: GivenBack) -> None:
    is_early = stopped is not None and stopped < server.ends
    found.idle += server.gpus * (len(server.computes) - server.ends)
    if stopped is not None and not is_early:
        found.back += server.gpus * (len(server.computes) - stopped)
    if server.is_job:
        found.jobs, found.jobs_stopped = found.jobs + 1, found.jobs_stopped + is_early
    else:
        found.people, found.people_stopped = found.people + 1, found.people_stopped + is_early


def _exported(server: PlayedServer, dice: random.Random) -> Iterator[float | None]:
    """Yield what the exporter says each minute; None while it is down."""
    down = 0
    for computes in server.computes:
        down = down - 1 if down else (_GAP if dice.random() < 1 / _GAP_EVERY else 0)
        if down:
            yield None
        else:
            yield 0.9 if computes and dice.random() >= _ZERO else 0.0


def simulated(seeds: Iterable[int], people: int = 600) -> dict[int, GivenBack]:
    """Return what came of each length in some weeks, by its minutes."""
    found = {minutes: GivenBack() for minutes in LENGTHS}
    for seed in seeds:
        dice = random.Random(seed)
        servers = [played(it, dice) for it in university(seed, people).visits]
        for minutes, counted in found.items():
            for number, server in enumerate(servers):
                play(server, minutes, random.Random(f"{seed} {number}"), counted)
    return found


def table(found: dict[int, GivenBack]) -> str:
    """Return the table of the documentation."""
    head = (
        "| `after` | idle GPU time given back | jobs stopped "
        "| people stopped while they were thinking | warnings, and kept | shortest warning |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    rows = (
        f"| {minutes} min | {it.back / it.idle:.0%} | {it.jobs_stopped} of {it.jobs} "
        f"| {it.people_stopped} of {it.people} | {it.warnings}, {it.kept} | {it.warned:.0f} min |"
        for minutes, it in found.items()
    )
    return "\n".join([head, *rows])


if __name__ == "__main__":
    print(table(simulated(range(10))))
