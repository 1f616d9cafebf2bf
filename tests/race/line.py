"""A race for places in line: a hundred people wait for fifteen GPUs, and servers end at random."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from threading import Event

import requests

from tests.hub.running import RunningHub
from tests.race import troubles
from tests.race.history import History, idle_times, most_at_once
from tests.race.stage import ACCELERATOR, SIZES, Object, Result, Stage, beside, nodes, staged
from tests.waiting import wait_for

NAMESPACE = "line"
GPUS = sum(SIZES)
_CONFIGURATION = """
from gpuspawner.line import in_line
in_line.RELOAD_SECONDS = 1.0  # so that a closed page counts within the race
c.JupyterHub.cleanup_servers = False
c.JupyterHub.concurrent_spawn_limit = 20
c.GPUSpawner.queue = True
"""

_IDLE_SECONDS = 1.0
"""How long a GPU may be free while somebody waits for one."""
_TIMES_THE_MEDIAN = 10
"""How many times as long as in the median it may be free: on a slow machine, all takes longer."""
_RECOVERY_SECONDS = 4.0
"""The same if the hub or the API server has just come back: watches have to be opened again."""
_HOLD_SECONDS = 1.5
"""How long a server runs, on average."""
_LINES = 60
"""How much of the hub's log is shown about those who never get a server."""
_CLOSERS = 3
"""One in so many people closes the page now and then, in the race about that."""


@dataclass(frozen=True)
class LineRace:
    """The settings of a race.

    Attributes:
        trouble: What goes wrong meanwhile.
        loses: Whether starts may be cut, so that their owners have to ask again.
        idle: For how long a GPU may be free while somebody waits for one, in seconds.
        has_pages: Whether people keep their place only while a page is open.
    """

    name: str
    trouble: troubles.Trouble = troubles.undisturbed
    loses: bool = False
    idle: float = _IDLE_SECONDS
    has_pages: bool = False

    @property
    def options(self) -> dict[str, object]:
        """What everybody asks for."""
        return {"accelerator": "gpu", "gpus": 1, "wait": "here" if self.has_pages else True}

    def closers(self, names: Sequence[str]) -> Sequence[str]:
        """Those whose pages are closed now and then; others may go ahead of them meanwhile."""
        return names[::_CLOSERS] if self.has_pages else ()


_hub_restarted = partial(
    troubles.restarting_hub, ends=(RunningHub.end, RunningHub.kill), after=(2.0, 4.0)
)
_api_server_restarted = partial(troubles.restarting_api_server, times=2, after=(1.0, 3.0))

RACES = (
    LineRace("in line, undisturbed"),
    LineRace("in line, watches cut", troubles.cutting),
    LineRace("in line, API server restarted", _api_server_restarted, idle=_RECOVERY_SECONDS),
    LineRace("in line, hub restarted", _hub_restarted, loses=True, idle=_RECOVERY_SECONDS),
    LineRace("in line, pages closed", has_pages=True),
)


@contextmanager
def racing(folder: Path, people: int) -> Iterator[Callable[[LineRace, int], Result]]:
    """Set everything up, and yield what runs a round from a seed."""
    names = [f"p{number:03}" for number in range(people)]
    with staged(folder, NAMESPACE, nodes(), _CONFIGURATION + ACCELERATOR) as stage:
        yield lambda race, seed: Round(race, stage, names, random.Random(seed)).run()


@dataclass
class Round:
    """One round of a race.

    Attributes:
        names: Who takes part, in the order in which they join.
        log: How long the hub's log was at the beginning: each round has the same people.
        served: Who got a server, in order.
        cut: Whose start was cut after the call.
    """

    race: LineRace
    stage: Stage
    names: Sequence[str]
    dice: random.Random
    log: int = 0
    served: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def run(self) -> Result:
        """Let everybody join, in order; stop servers at random until all have had one.

        The result has the most GPUs in use at once, and for how long a GPU was free while somebody
        waited, without the time during which the hub or the API server was away.
        """
        wait_for(lambda: _free(self.stage) == GPUS)  # the last round may have ended with a restart
        self.log = len(self.stage.hub.log)
        stay = [name for name in self.names if name not in self.race.closers(self.names)]
        history = History(self.stage.cluster, NAMESPACE)
        result = Result()
        with history.following(), self._pages() as open_page:
            for name in self.names:
                answer = wait_for(partial(self._ask, name))
                if answer.status_code not in (201, 202):
                    result.wrong.append(f"{name} was answered {answer.status_code}: {answer.text}")
                open_page(name)
            with beside(partial(self.race.trouble, self.stage, self.dice)):
                self._serve_all()
        # If there are as many GPUs as people, nobody waits for one that was freed.
        idle = idle_times(history.changes, len(stay), self.stage.absent) or [0.0]
        result.counts.update(served=len(self.served), cut=len(self.cut))
        result.most = {
            "GPUs at once": most_at_once(history.changes),
            "seconds that a GPU was idle": max(idle),
        }
        result.wrong += [*history.errors, *self._wrong(history, stay, idle)]
        self.stage.delete_pods()
        return result

    @contextmanager
    def _pages(self) -> Iterator[Callable[[str], object]]:
        """Yield what opens the page of somebody who has joined, for as long as the block lasts."""
        if not self.race.has_pages:
            yield lambda _name: None
            return
        over, closers, opened = Event(), self.race.closers(self.names), list[Future[None]]()
        with ThreadPoolExecutor(len(self.names)) as threads:

            def open_page(name: str) -> None:
                times = self.dice.uniform(2, 6), self.dice.uniform(2, 4)
                follow = partial(_follow, self.stage.hub, name, over)
                opened.append(threads.submit(follow, *(times if name in closers else ())))

            try:
                yield open_page
            finally:
                over.set()
        for page in opened:
            page.result()  # raises why a page failed, which must not just be gone

    def _ask(self, name: str) -> requests.Response | None:
        """Ask for a server; None if the hub lets no more people start right now.

        While contact with the cluster is lost, those who ask wait at the gate, not in line.
        """
        answer = self.stage.hub.start(name, self.race.options)
        return None if answer.status_code == requests.codes.too_many_requests else answer

    def _serve_all(self) -> None:
        """Stop each server some time after it was ready; who was cut asks again."""
        waiting, stops = set(self.names), dict[str, float]()
        deadline = time.monotonic() + 300
        while waiting or stops:
            assert time.monotonic() < deadline, self._about_never_served(waiting)
            now = time.monotonic()
            with suppress(requests.RequestException):
                for name, server in _servers(self.stage).items():
                    if name in waiting and server.get("ready"):
                        waiting.discard(name)
                        self.served.append(name)
                        stops[name] = now + self.dice.uniform(0, 2 * _HOLD_SECONDS)
                    elif name in waiting and not server.get("pending") and self._was_called(name):
                        self.cut.append(name)
                        self._ask(name)
                for name in [it for it, at in stops.items() if at <= now]:
                    stopped = self.stage.hub.api("DELETE", f"/users/{name}/server")
                    if stopped.status_code in (202, 204):
                        del stops[name]
            time.sleep(0.1)

    def _was_called(self, name: str) -> bool:
        """Whether somebody's turn came; the hub may have cut the start since."""
        return f"It is the turn of {name} in line" in self._logged()

    def _logged(self) -> str:
        return self.stage.hub.log[self.log :]

    def _about_never_served(self, waiting: set[str]) -> str:
        """Name those who never got a server, and quote what the hub's log says of them last."""
        of_them = re.compile("|".join(sorted(waiting)))
        lines = [it for it in self._logged().splitlines() if of_them.search(it)]
        said = [it for it in lines if " GET /hub/api/users" not in it]
        return "\n".join((f"never served: {sorted(waiting)}", f"cut: {self.cut}", *said[-_LINES:]))

    def _wrong(self, history: History, stay: Sequence[str], idle: list[float]) -> Iterator[str]:
        """Yield what must not have happened, by the history of the pods."""
        # Without an answer, KubeSpawner sends a pod again, and deletes the one that is there.
        again = re.findall(r"Found existing pod jupyter-(\S+), attempting to kill", self._logged())
        created = [it for it in history.created if it not in self.cut]
        if (most := most_at_once(history.changes)) > GPUS:
            yield f"{most} pods were there at once"
        if twice := {it for it in created if created.count(it) > 1} - set(again):
            yield f"started twice: {sorted(twice)}"
        if set(created) != set(self.names) - set(self.cut):
            yield "somebody never got a server"
        if late := _late([it for it in dict.fromkeys(created) if it in stay], self.names):
            yield f"not in the promised order: {late}"
        if max(idle) > max(self.race.idle, _TIMES_THE_MEDIAN * median(idle)):
            yield f"a GPU was idle for {max(idle):.2f} s, and {median(idle):.2f} s in the median"
        if not self.race.loses and self.cut:
            yield f"cut: {self.cut}"


def _follow(
    hub: RunningHub, name: str, over: Event, is_open: float = 120.0, is_closed: float = 0.2
) -> None:
    """Have a page open that follows the progress of its owner's start, as a browser does.

    It connects again when the stream has ended. A page that is closed now and then is open for
    some seconds, and closed for some, again and again.
    """
    while not over.is_set():
        ends = time.monotonic() + is_open
        with (
            suppress(requests.RequestException),
            hub.api("GET", f"/users/{name}/server/progress", stream=True, timeout=is_open) as told,
        ):
            for _ in told.iter_content(chunk_size=None):
                if over.is_set() or time.monotonic() > ends:
                    break
        over.wait(is_closed)


def _free(stage: Stage) -> int | None:
    """Return how many GPUs are free, as the hub's form has it; None if it doesn't know."""
    answer = stage.hub.api("GET", "/../gpuspawner/states/admin/")
    if not answer.ok:  # the hub limits questions
        return None
    (gpus,) = (it["gpus"] for it in answer.json()["accelerators"] if it["accelerator"])
    return gpus["free"] if gpus else None


def _servers(stage: Stage) -> dict[str, Object]:
    """Return everybody's default server; an empty one for those without."""
    users = stage.hub.api("GET", "/users?include_stopped_servers=1").json()
    return {it["name"]: it.get("servers", {}).get("", {}) for it in users}


def _late(created: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return who was served after somebody further back than those who are called together."""
    places = {name: place for place, name in enumerate(names)}
    found, furthest = [], -1
    for name in created:
        if places[name] < furthest - GPUS:
            found.append(name)
        furthest = max(furthest, places[name])
    return found
