"""A race for places in line: a hundred people wait for fifteen GPUs, and servers end at random."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import requests

from localcluster.client import unless_gone
from tests.race.beside import beside
from tests.race.line_stage import GPUS, NAMESPACE, LineStage
from tests.race.pages import open_pages
from tests.race.timeline import Timeline
from tests.race.troubles import cutting, restart
from tests.waiting import wait_for

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_IDLE_SECONDS = 1.0
"""How long a GPU may be free while somebody waits for one."""
_RECOVERY_SECONDS = 4.0
"""The same if the hub or the API server has just come back: watches have to be opened again."""
_HOLD_SECONDS = 1.5
"""How long a server runs, on average."""
_LINES = 60
"""How much of the hub's log is shown about those who never get a server."""
_CLOSERS = 3
"""One in so many people closes the page now and then, in the race about that."""

Trouble = Callable[[LineStage, random.Random], AbstractContextManager[None]]


@dataclass(frozen=True)
class LineRace:
    """The settings of a race.

    Attributes:
        name: Its name in the table.
        trouble: What goes wrong meanwhile.
        loses: Whether starts may be cut, so that their owners have to ask again.
        idle: For how long a GPU may be free while somebody waits for one, in seconds.
        wish: What people send as ``wait``: with "here", they need an open page.
    """

    name: str
    trouble: Trouble = lambda _stage, _dice: nullcontext()
    loses: bool = False
    idle: float = _IDLE_SECONDS
    wish: bool | str = True

    @property
    def options(self) -> dict[str, object]:
        """What everybody asks for."""
        return {"accelerator": "gpu", "gpus": 1, "wait": self.wish}

    def closers(self, names: Sequence[str]) -> Sequence[str]:
        """Those whose pages are closed now and then; others may go ahead of them meanwhile."""
        return names[::_CLOSERS] if self.wish == "here" else ()

    def pages(
        self, stage: LineStage, names: Sequence[str], dice: random.Random
    ) -> AbstractContextManager[Callable[[str], object]]:
        """Return what opens the page of somebody who has joined, as a browser does."""
        if self.wish != "here":
            return nullcontext(lambda _name: None)
        return open_pages(stage.hub.url, self.closers(names), random.Random(dice.random()))


@dataclass
class LineResult:
    """What became of all.

    Attributes:
        served: Who got a server, in order.
        cut: Whose start was cut after the call.
        most: The most GPUs in use at once.
        idle: For how long a GPU was free while somebody waited, at most, in seconds; without the
            time during which the hub or the API server was away.
        wrong: What must not happen, one sentence each.
    """

    served: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    most: int = 0
    idle: float = 0.0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield what the table says."""
        yield (
            f"{len(self.served)} served, {len(self.cut)} cut, at most {self.most} GPUs at once, "
            f"a GPU idle for {self.idle:.2f} s at most, {self.seconds:.0f} s"
        )
        yield from (f"WRONG: {it}" for it in self.wrong)


@contextmanager
def restarting(stage: LineStage, dice: random.Random) -> Iterator[None]:
    """Restart the hub twice, once by force."""

    def twice() -> None:
        for end in (stage.hub.end, stage.hub.kill):
            time.sleep(dice.uniform(2.0, 4.0))
            with stage.away():
                restart(stage.hub, end)

    with beside(twice):
        yield


@contextmanager
def without_the_api_server(stage: LineStage, dice: random.Random) -> Iterator[None]:
    """Restart the API server twice."""

    def twice() -> None:
        for _ in range(2):
            time.sleep(dice.uniform(1.0, 3.0))
            with stage.away():
                stage.cluster.restart_apiserver()

    with beside(twice):
        yield


LINE_RACES = (
    LineRace("in line, undisturbed"),
    LineRace("in line, watches cut", cutting),
    LineRace("in line, API server restarted", without_the_api_server, idle=_RECOVERY_SECONDS),
    LineRace("in line, hub restarted", restarting, loses=True, idle=_RECOVERY_SECONDS),
    LineRace("in line, pages closed", wish="here"),
)


def run(race: LineRace, stage: LineStage, people: int, seed: int) -> LineResult:
    """Let everybody join, in order; stop servers at random until all have had one."""
    wait_for(lambda: _free(stage) == GPUS)  # the last race may have ended with a restart
    dice, result = random.Random(seed), LineResult()
    names = [f"p{number:03}" for number in range(people)]
    began, before = time.monotonic(), len(stage.hub.log)
    called = partial(_called, stage, before)
    here = [name for name in names if name not in race.closers(names)]
    timeline = Timeline(stage.cluster, NAMESPACE, len(here))
    with timeline.following(), race.pages(stage, names, dice) as open_page:
        for name in names:
            answer = wait_for(partial(_asked, stage, name, race))
            if answer.status_code not in (201, 202):
                result.wrong.append(f"{name} was answered {answer.status_code}: {answer.text}")
            open_page(name)
        with race.trouble(stage, dice):
            _serve_all(stage, race, names, called, dice, result)
    result.seconds = time.monotonic() - began
    result.idle = timeline.longest_idle(stage.absent)
    # Without an answer, KubeSpawner sends a pod again, and deletes the one that is there already.
    again = re.findall(
        r"Found existing pod jupyter-(\S+), attempting to kill", stage.hub.log[before:]
    )
    _judge(result, timeline, names, race, set(again))
    for pod in stage.hub.pods.all():
        with unless_gone():
            stage.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}", 0)
    return result


def _asked(stage: LineStage, name: str, race: LineRace) -> requests.Response | None:
    """Ask for a server; None if the hub lets no more people start right now.

    While contact with the cluster is lost, those who ask wait at the gate, not in line.
    """
    answer = stage.hub.start(name, race.options)
    return None if answer.status_code == requests.codes.too_many_requests else answer


def _serve_all(
    stage: LineStage,
    race: LineRace,
    names: list[str],
    called: Callable[[], set[str]],
    dice: random.Random,
    result: LineResult,
) -> None:
    """Stop each server some time after it was ready; who was cut asks again."""
    waiting, stops = set(names), dict[str, float]()
    deadline = time.monotonic() + 300
    while waiting or stops:
        assert time.monotonic() < deadline, _never_served(stage, waiting, result)
        now = time.monotonic()
        with suppress(requests.RequestException):
            for name, server in _servers(stage).items():
                if name in waiting and server.get("ready"):
                    waiting.discard(name)
                    result.served.append(name)
                    stops[name] = now + dice.uniform(0, 2 * _HOLD_SECONDS)
                elif name in waiting and not server.get("pending") and name in called():
                    result.cut.append(name)
                    stage.hub.start(name, race.options)
            for name in [it for it, at in stops.items() if at <= now]:
                if stage.hub.api("DELETE", f"/users/{name}/server").status_code in (202, 204):
                    del stops[name]
        time.sleep(0.1)


def _never_served(stage: LineStage, waiting: set[str], result: LineResult) -> str:
    """Name those who never got a server, and quote what the hub's log says of them last."""
    of_them = re.compile("|".join(sorted(waiting)))
    lines = [it for it in stage.hub.log.splitlines() if of_them.search(it)]
    said = [it for it in lines if " GET /hub/api/users" not in it]
    return "\n".join((f"never served: {sorted(waiting)}", *result.lines(), *said[-_LINES:]))


def _called(stage: LineStage, before: int) -> set[str]:
    """Return who has been called; the hub may have cut some of their starts since.

    *before* is the length of the log when the race began: each race has the same people.
    """
    return set(re.findall(r"It is the turn of (\S+) in line", stage.hub.log[before:]))


def _free(stage: LineStage) -> int | None:
    """Return how many GPUs are free, as the hub's form has it; None if it doesn't know."""
    answer = stage.hub.api("GET", "/../gpuspawner/states/admin/")
    if not answer.ok:  # the hub limits questions
        return None
    (gpus,) = (it["gpus"] for it in answer.json()["accelerators"] if it["accelerator"])
    return gpus["free"] if gpus else None


def _servers(stage: LineStage) -> dict[str, dict[str, Any]]:
    """Return everybody's default server; an empty one for those without."""
    users = stage.hub.api("GET", "/users?include_stopped_servers=1").json()
    return {it["name"]: it.get("servers", {}).get("", {}) for it in users}


def _judge(
    result: LineResult, timeline: Timeline, names: list[str], race: LineRace, again: set[str]
) -> None:
    result.most = timeline.most
    result.wrong += timeline.errors
    created = [it for it in timeline.created if it not in result.cut]
    if result.most > GPUS:
        result.wrong.append(f"{result.most} pods were there at once: {dict(timeline.they)}")
    if twice := {it for it in created if created.count(it) > 1} - again:
        result.wrong.append(f"started twice: {sorted(twice)}")
    if set(created) != set(names) - set(result.cut):
        result.wrong.append("somebody never got a server")
    here = [it for it in dict.fromkeys(created) if it not in race.closers(names)]
    if late := _late(here, names):
        result.wrong.append(f"not in the promised order: {late}")
    if result.idle > race.idle:
        result.wrong.append(f"a GPU was idle for {result.idle:.2f} s")
    if not race.loses and result.cut:
        result.wrong.append(f"cut: {result.cut}")


def _late(created: list[str], names: list[str]) -> list[str]:
    """Return who was served after somebody further back than those who are called together."""
    places = {name: place for place, name in enumerate(names)}
    found, furthest = [], -1
    for name in created:
        if places[name] < furthest - GPUS:
            found.append(name)
        furthest = max(furthest, places[name])
    return found
