"""A race for limits: people ask by form and REST, again and again, while the hub has troubles.

A history of the pods tells whether a limit was exceeded at any moment. At the end each user must
get exactly what the limits allow. Only policies refuse here, because no node is ever full.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from threading import Event, Lock

from localcluster import Fleet
from tests.hub.running import RunningHub
from tests.race import troubles
from tests.race.history import History, exceeded
from tests.race.limits import ACCELERATORS, SERVERS, Books, Class, Server
from tests.race.stage import Result, Stage, beside, node_group, staged
from tests.race.tabs import AWAY, STARTED, Answer, Tab, Way
from tests.waiting import wait_for

NAMESPACE = "policies"
TABS = 4
"""Fifty users with so many tabs make two hundred requests at once."""
_VISITS = 2
_AWAY_SECONDS = 0.5
"""After which whoever finds the hub away asks again."""
_REACHED = {"the course's GPUs": 8, "a user's servers": 2}
"""The limits that a round has to reach, or it would prove nothing."""
_FAILED = re.compile(r"Unhandled error starting \S+'s server.*")
_WISHES = (
    ("", "t4", 2),
    ("work", "t4", 1),
    ("work", "a100", 2),
    ("exp-1", "t4", 1),
    ("exp-2", "t4", 1),
)
_CONFIGURATION = """
c.JupyterHub.allow_named_servers = True
c.JupyterHub.cleanup_servers = False
c.JupyterHub.load_roles[0]["scopes"].append("tokens")
c.KubeSpawner.delete_grace_period = 1
c.KubeSpawner.start_timeout = 120
"""


@dataclass(frozen=True)
class PolicyRace:
    """The settings of a race for limits.

    Attributes:
        trouble: What goes wrong meanwhile.
        loses: Whether starts may fail, and the hub may forget a server that was starting.
    """

    name: str
    trouble: troubles.Trouble = troubles.undisturbed
    loses: bool = False


_ended = partial(troubles.restarting_hub, ends=(RunningHub.end,))
_killed = partial(troubles.restarting_hub, ends=(RunningHub.kill,))
# The busy hub may need some tenths of a second to send its request on a new connection.
_cut = partial(troubles.cutting, idle=0.8)


def _killed_and_cut(stage: Stage, dice: random.Random, over: Event) -> None:
    with beside(partial(_killed, stage, dice)):
        _cut(stage, dice, over)


RACES = (
    PolicyRace("limits"),
    PolicyRace("limits, hub restarted", _ended, loses=True),
    PolicyRace("limits, hub killed", _killed, loses=True),
    PolicyRace("limits, watches cut", _cut, loses=True),
    PolicyRace("limits, hub killed and watches cut", _killed_and_cut, loses=True),
)


@contextmanager
def racing(folder: Path, people: int) -> Iterator[Callable[[PolicyRace, int], Result]]:
    """Set everything up and log half of the people in; yield what runs a round from a seed."""
    people //= 2
    users = Class.of(people)
    offers = {
        key: {"display_name": name, "counts": [1, 2, 4], "node_selector": {"gpu": key}}
        for key, name in ACCELERATORS.items()
    }
    lines = f"{_CONFIGURATION}\nc.GPUSpawner.accelerators = {offers!r}\n{users.configuration}"
    # All that people may ask for fits at once: four servers of four GPUs each.
    fleet = Fleet(tuple(node_group(key, people // 4 + 1, 64, key) for key in ACCELERATORS))
    with staged(folder, NAMESPACE, fleet, lines) as stage, stage.servers.watching():
        with ThreadPoolExecutor(8) as at_once:
            arrive = partial(Tab.arrive, stage, users.limits)
            tabs = list(at_once.map(arrive, users.people))
        yield lambda race, seed: run(race, stage, tabs, seed)


def run(race: PolicyRace, stage: Stage, tabs: Sequence[Tab], seed: int) -> Result:
    """Run one round; at its end no server is left.

    The result counts how many requests were answered how. Whoever finds the hub away asks again as
    part of the same attempt. It also counts

    - *pods*: those that were created in the race itself
    - *gone*: granted servers that weren't ready when the hub had started them: another tab had
      stopped them, the hub was restarted, or the start failed
    - *failed*: starts that failed, as the hub's log tells
    - *left*: pods of servers that the hub has forgotten
    - *turns*: requests of the turns at the end

    It has the most that anybody held at once of each limit.
    """
    dice, result, began = random.Random(seed), Result(), len(stage.hub.log)
    history, books, lock = History(stage.cluster, NAMESPACE), Books(tabs[0].limits), Lock()
    with history.following():
        visits = [
            Visits(tab.another(), random.Random(dice.random()), result, lock)
            for tab in tabs
            for _ in range(TABS)
        ]
        with beside(partial(race.trouble, stage, dice)), ThreadPoolExecutor(len(visits)) as at_once:
            list(at_once.map(Visits.make, visits))
        everything = product(tabs, SERVERS)
        with ThreadPoolExecutor(40) as at_once:
            list(at_once.map(lambda it: it[0].another().stop(it[1]), everything))
        left = len(stage.hub.pods.all())
        stage.delete_pods()
        wait_for(lambda: history.is_over)
        failed = _FAILED.findall(stage.hub.log[began:])
        result.counts.update(pods=len(history.created), failed=len(failed), left=left)
        turns = Turns(dice, tabs)
        result.wrong += turns.take()
        result.counts["turns"] = turns.asked
        wait_for(lambda: history.is_over)
    result.wrong += exceeded(history.changes, books) + history.errors
    result.most.update(books.peaks)
    too_few = [it for it, most in _REACHED.items() if books.peaks[it] != most]
    result.wrong += [f"at most {books.peaks[it]} of {it}" for it in too_few]
    result.wrong += [it for it in result.counts if it.startswith("HTTP ")]
    if not race.loses:
        result.wrong += [*failed, *([f"{left} pods of forgotten servers"] if left else [])]
    return result


@dataclass(frozen=True)
class Visits:
    """The requests of one tab; the lock is for the result, which all share."""

    tab: Tab
    dice: random.Random
    result: Result
    lock: Lock

    def make(self) -> None:
        """Ask for servers, and stop some of them."""
        self._pause(1)
        for _ in range(_VISITS):
            gpus = self.dice.choices([1, 2, 4], [6, 4, 1])[0]
            accelerator = self.dice.choice(list(ACCELERATORS))
            wish = Server(self.tab.owner, self.dice.choice(SERVERS), accelerator, gpus)
            ways = self.dice.choices(list(Way), k=2 if self.dice.random() < 0.2 else 1)
            with ThreadPoolExecutor(len(ways)) as at_once:
                started = any(list(at_once.map(partial(self._ask, wish), ways)))
            if started:
                self._pause(2)
                if self.dice.random() < 0.6:
                    self.tab.stop(wish.name)

    def _ask(self, wish: Server, way: Way) -> bool:
        """Ask until the hub answers; return whether the server is ready."""
        if wait_for(lambda: self._answer(wish, way), timeout=300) != STARTED:
            return False
        is_ready = bool(self.tab.stage.servers.until_idle(wish.owner, wish.name).get("ready"))
        with self.lock:
            self.result.counts["gone"] += not is_ready
        return is_ready

    def _answer(self, wish: Server, way: Way) -> str | None:
        """Return what one answer comes to, None if the hub is away."""
        answer = self.tab.ask(wish, way)
        with self.lock:
            self.result.counts[answer.kind] += 1
        if answer.kind != AWAY:
            return answer.kind
        time.sleep(_AWAY_SECONDS)
        return None

    def _pause(self, most: float) -> None:
        time.sleep(self.dice.uniform(0, most))


class Turns:
    """One user after another asks for more than the limits allow, when nobody else asks.

    They keep their servers, so the group's share is soon gone. Whoever is refused for this reason
    asks again when the others have stopped.

    Attributes:
        asked: How many servers were asked for.
    """

    def __init__(self, dice: random.Random, tabs: Sequence[Tab]) -> None:
        self.asked = 0
        self._wrong: list[str] = []
        self._dice = dice
        self._tabs = {tab.owner: tab for tab in tabs}
        self._books = Books(tabs[0].limits)
        self._held: dict[tuple[str, str], Server] = {}

    def take(self) -> list[str]:
        """Let each user have a turn, then stop all servers.

        Returns:
            A sentence for each answer that is not the one by the limits.
        """
        for owner in self._dice.sample(list(self._tabs), len(self._tabs)):
            others_have_it = [self._ask(wish) for wish in self._wishes(owner)]
            if any(others_have_it):
                self._stop(it for it in self._held.values() if it.owner != owner)
                for wish in self._wishes(owner):
                    self._ask(wish)
        self._stop(self._held.values())
        return self._wrong

    def _wishes(self, owner: str) -> list[Server]:
        return [Server(owner, *wish) for wish in self._dice.sample(_WISHES, len(_WISHES))]

    def _ask(self, wish: Server) -> bool:
        """Ask for a server; return whether others have to stop first."""
        if (wish.owner, wish.name) in self._held:
            return False
        self.asked += 1
        against = self._books.against(wish)
        used = {it.name: self._books.used(it, wish) for it in against}
        answer = self._tabs[wish.owner].another().ask(wish, self._dice.choice(list(Way)))
        if not _is_right(answer, used):
            told = f"{answer.kind}: {answer.text[:300]}"
            self._wrong.append(f"{wish} by {used or 'no limit'}: {told}")
        if answer.kind == STARTED:
            self._books.add(wish)
            self._held[wish.owner, wish.name] = wish
        return any(it.group for it in against)

    def _stop(self, servers: Iterable[Server]) -> None:
        chosen = list(servers)
        with ThreadPoolExecutor(20) as at_once:
            list(at_once.map(lambda it: self._tabs[it.owner].another().stop(it.name), chosen))
        for server in chosen:
            self._books.remove(server)
            del self._held[server.owner, server.name]


def _is_right(answer: Answer, used: dict[str, int]) -> bool:
    """Whether the answer is the one by these limits, with the figure of what is used."""
    if not used:
        return answer.kind == STARTED
    figure = used.get(answer.kind)
    return figure is not None and any(f"{it} {figure}" in answer.text for it in ("using", "uses"))
