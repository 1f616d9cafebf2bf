"""A race for limits: people ask by form and REST, again and again, while the hub has troubles.

A history of the pods tells whether a limit was exceeded at any moment. At the end each user must
get exactly what the limits allow.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import Lock

from localcluster.client import unless_gone
from tests.race.beside import beside
from tests.race.history import History
from tests.race.limits import SERVERS, Server
from tests.race.policy_stage import NAMESPACE, PolicyStage
from tests.race.tabs import AWAY, STARTED, Tab, User, Way
from tests.race.troubles import restart
from tests.race.turns import Turns
from tests.waiting import wait_for

TABS = 4
"""Fifty users with so many tabs make two hundred requests at once."""
_VISITS = 2
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_PODS_AT_RESTART = 5
# Seconds. The busy hub may need some tenths to send its request on a new connection.
_IDLE = 0.8
_REFUSED = re.compile(r"Not starting \S+ \((\S+)\): ")
_FAILED = re.compile(r"Unhandled error starting (\S+)'s server.*")

Trouble = Callable[[PolicyStage, random.Random], AbstractContextManager[None]]


@dataclass(frozen=True)
class PolicyRace:
    """The settings of a race for limits.

    Attributes:
        trouble: What goes wrong meanwhile.
        loses: Whether starts may fail, and the hub may forget a server that was starting.
    """

    name: str
    trouble: Trouble = lambda _stage, _dice: nullcontext()
    loses: bool = False


@dataclass
class PolicyResult:
    """The outcomes of a round.

    Attributes:
        answers: How many requests were answered how. Who finds the hub away asks again, which isn't
            one more attempt.
        logged: How many starts the hub's log calls refused, by reason.
        servers: Pods that were created in the race itself.
        gone: Granted servers that weren't ready when the hub had started them: another tab had
            stopped them, the hub was restarted, or the start failed.
        failed: Starts that failed, as the hub's log tells.
        left: Pods of servers that the hub has forgotten.
        turns: Requests of the turns at the end.
        peaks: The most that anybody held at once, by limit.
        wrong: What must not happen, one sentence each.
        longest_answer, longest_start: In seconds.
    """

    answers: Counter[str] = field(default_factory=Counter)
    logged: Counter[str] = field(default_factory=Counter)
    servers: int = 0
    gone: int = 0
    failed: list[str] = field(default_factory=list)
    left: int = 0
    turns: int = 0
    peaks: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    longest_answer: float = 0.0
    longest_start: float = 0.0
    seconds: float = 0.0
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def sum(cls, results: Sequence[PolicyResult]) -> PolicyResult:
        """Return the outcomes of several rounds together."""
        summed = cls()
        for result in results:
            summed.answers += result.answers
            summed.logged += result.logged
            summed.servers += result.servers
            summed.gone += result.gone
            summed.failed += result.failed
            summed.left += result.left
            summed.turns += result.turns
            summed.peaks |= Counter(summed.peaks) | Counter(result.peaks)
            summed.wrong += result.wrong
            summed.longest_answer = max(summed.longest_answer, result.longest_answer)
            summed.longest_start = max(summed.longest_start, result.longest_start)
            summed.seconds += result.seconds
        return summed

    def lines(self) -> Iterator[str]:
        """Yield what the table says about the round."""
        refused = ", ".join(f"{n} {it}" for it, n in sorted(self.answers.items()) if it != STARTED)
        peaks = ", ".join(f"{it} {most}" for it, most in sorted(self.peaks.items()))
        yield (
            f"{self.answers.total() - self.answers[AWAY]} attempts, "
            f"{self.answers[STARTED]} granted, "
            f"{self.servers} pods, {self.gone} gone, {len(self.failed)} failed, {self.left} left, "
            f"{self.turns} turns"
        )
        yield (
            f"{self.seconds:.0f} s, longest answer {self.longest_answer:.1f} s, "
            f"longest start {self.longest_start:.1f} s"
        )
        yield f"not granted: {refused}"
        yield f"in the log: {dict(self.logged)}"
        yield from (f"failed: {it}" for it in self.failed)
        yield f"peaks: {peaks}"
        yield from (f"WRONG: {it}" for it in self.wrong)


@contextmanager
def restarting(stage: PolicyStage, dice: random.Random) -> Iterator[None]:
    """Stop the hub in the middle, and start it again."""
    with beside(lambda: _restart(stage, dice, stage.hub.end)):
        yield


@contextmanager
def killing(stage: PolicyStage, dice: random.Random) -> Iterator[None]:
    """Kill the hub in the middle, and start it again."""
    with beside(lambda: _restart(stage, dice, stage.hub.kill)):
        yield


@contextmanager
def cutting(stage: PolicyStage, dice: random.Random) -> Iterator[None]:
    """Cut the hub's watches at random."""
    before = stage.proxy.cuts
    with stage.proxy.cutting_idle(dice, idle=_IDLE):
        yield
    assert stage.proxy.cuts > before


@contextmanager
def killing_and_cutting(stage: PolicyStage, dice: random.Random) -> Iterator[None]:
    """Kill the hub in the middle, and cut its watches before and after."""
    with cutting(stage, dice), killing(stage, dice):
        yield


def _restart(stage: PolicyStage, dice: random.Random, end: Callable[[], None]) -> None:
    """Restart the hub while some servers run and others start."""
    with suppress(TimeoutError):
        wait_for(lambda: len(stage.cluster.api.items(_PODS)) >= _PODS_AT_RESTART, timeout=10)
    time.sleep(dice.uniform(0, 2))
    restart(stage.hub, end)


POLICY_RACES = (
    PolicyRace("limits"),
    PolicyRace("limits, hub restarted", restarting, loses=True),
    PolicyRace("limits, hub killed", killing, loses=True),
    PolicyRace("limits, watches cut", cutting, loses=True),
    PolicyRace("limits, hub killed and watches cut", killing_and_cutting, loses=True),
)


def arrive(stage: PolicyStage) -> list[User]:
    """Log everybody in."""
    with ThreadPoolExecutor(8) as at_once:
        return list(at_once.map(lambda name: User.arrive(stage, name), stage.users.people))


def run(race: PolicyRace, stage: PolicyStage, users: Sequence[User], seed: int) -> PolicyResult:
    """Run one round; at its end no server is left."""
    dice = random.Random(seed)
    history = History(stage.cluster, NAMESPACE, stage.users.limits)
    result = PolicyResult()
    began, log = time.monotonic(), len(stage.hub.log)
    with history.following():
        visits = [
            Visits(user.tab(), random.Random(dice.random()), result)
            for user in users
            for _ in range(TABS)
        ]
        with race.trouble(stage, dice), ThreadPoolExecutor(len(visits)) as at_once:
            list(at_once.map(lambda it: it.make(), visits))
        _stop_all(users)
        result.left = _delete_left(stage)
        wait_for(lambda: history.is_empty or history.errors)
        result.servers = history.created
        result.logged = Counter(_REFUSED.findall(stage.hub.log[log:]))
        result.failed = [it[0] for it in _FAILED.finditer(stage.hub.log[log:])]
        turns = Turns(stage, dice)
        turns.take(users)
        wait_for(lambda: history.is_empty or history.errors)
    result.turns, result.peaks = turns.asked, history.peaks
    result.wrong += history.exceeded + history.errors + turns.wrong
    result.wrong += [it for it in result.answers if it.startswith("HTTP ")]
    if not race.loses:
        result.wrong += result.failed
        result.wrong += [f"{result.left} pods of forgotten servers"] if result.left else []
    result.seconds = time.monotonic() - began
    return result


@dataclass
class Visits:
    """The requests of one tab."""

    tab: Tab
    dice: random.Random
    result: PolicyResult

    def make(self) -> None:
        """Ask for servers, and stop some of them."""
        self._pause(1)
        for _ in range(_VISITS):
            wish = self._wish()
            if self.dice.random() < 0.2:
                with ThreadPoolExecutor(2) as at_once:
                    ways = [self._way(), self._way()]
                    started = any(list(at_once.map(lambda way: self._ask(wish, way), ways)))  # noqa: B023
            else:
                started = self._ask(wish, self._way())
            if started:
                self._pause(2)
                if self.dice.random() < 0.6:
                    self.tab.stop(wish.name)

    def _wish(self) -> Server:
        gpus = self.dice.choices([1, 2, 4], [6, 4, 1])[0]
        accelerator = self.dice.choice(["t4", "a100"])
        return Server(self.tab.user.name, self.dice.choice(SERVERS), accelerator, gpus)

    def _way(self) -> Way:
        return self.dice.choice(list(Way))

    def _ask(self, wish: Server, way: Way) -> bool:
        """Ask until the hub answers; return whether the server is ready."""
        began = time.monotonic()
        while True:
            answer = self.tab.ask(wish, way)
            with self.result.lock:
                self.result.answers[answer.kind] += 1
                self.result.longest_answer = max(self.result.longest_answer, answer.seconds)
            if answer.kind != AWAY:
                break
            time.sleep(0.5)
        if answer.kind != STARTED:
            return False
        shown = self.tab.user.stage.servers.wait_for(
            wish.owner, lambda it: not it.get("pending"), timeout=300, name=wish.name
        )
        with self.result.lock:
            if shown.get("ready"):
                longest = max(self.result.longest_start, time.monotonic() - began)
                self.result.longest_start = longest
            else:
                self.result.gone += 1
        return bool(shown.get("ready"))

    def _pause(self, most: float) -> None:
        time.sleep(self.dice.uniform(0, most))


def _stop_all(users: Sequence[User]) -> None:
    named = [(user.tab(), name) for user in users for name in SERVERS]
    with ThreadPoolExecutor(40) as at_once:
        list(at_once.map(lambda it: it[0].stop(it[1]), named))


def _delete_left(stage: PolicyStage) -> int:
    """Delete the pods of servers that the hub has forgotten; return how many."""
    left = stage.cluster.api.items(_PODS)
    for pod in left:
        with unless_gone():
            stage.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}", grace=0)
    return len(left)
