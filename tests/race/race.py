"""One round of a race: users ask for GPUs while things go wrong; then it counts the outcomes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event

from localcluster.client import unless_gone
from tests.race.beside import beside
from tests.race.replay import Line
from tests.race.servers import Server
from tests.race.stage import GPU, NAMESPACE, Stage, nodes
from tests.race.troubles import cutting
from tests.race.twin import Misjudged
from tests.waiting import wait_for

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_OTHERS = "other-"

Trouble = Callable[[Stage, random.Random], AbstractContextManager[None]]


@dataclass(frozen=True)
class Race:
    """The settings of a race.

    Attributes:
        name: Its name in the table.
        sizes: From the number of users, how many GPUs each asks for.
        trouble: What goes wrong meanwhile.
        visits: How often a user who got a server asks; in between, the user stops it.
    """

    name: str
    sizes: Callable[[int, random.Random], list[int]]
    trouble: Trouble = lambda _stage, _dice: nullcontext()
    visits: int = 1


@dataclass
class Result:
    """The outcomes of a round.

    Attributes:
        accepted: Pods that the last gate let through.
        unchecked: Those of them that it could not check.
        taken: Those of them that were refused afterwards because another pod was first.
        refused: Requests refused because there is no room.
        again: Requests refused with the advice to try again in a few seconds.
        failed: Starts that ended otherwise, for example because the API server was down.
        running: Servers that run at the end.
        pending: Pods of users' servers without a node at the end.
        fitting: Refused requests for which the twin's scheduler finds a node.
        reservations: Reservations that are left at the end.
        seconds: How long it took.
    """

    accepted: int = 0
    unchecked: int = 0
    taken: int = 0
    refused: int = 0
    again: int = 0
    failed: int = 0
    running: int = 0
    pending: int = 0
    fitting: list[Misjudged] = field(default_factory=list)
    reservations: int = 0
    seconds: float = 0.0


def alike(people: int, _dice: random.Random) -> list[int]:
    return [1] * people


def mixed(people: int, dice: random.Random) -> list[int]:
    return dice.choices([1, 1, 2, 3, 4, 8], k=people)


@contextmanager
def restarting(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Restart the API server during the race."""

    def restart() -> None:
        time.sleep(dice.uniform(0.2, 1.0))
        stage.cluster.restart_apiserver()

    with beside(restart):
        yield


@contextmanager
def competing(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Create pods as another client, which asks no gate."""
    over = Event()

    def compete() -> None:
        for number in range(4):
            gpus = {GPU: str(dice.choice([1, 2]))}
            container = {"name": "x", "image": "x", "resources": {"limits": gpus}}
            spec = {"containers": [container], "nodeSelector": {"gpu": "yes"}}
            stage.cluster.api.create(
                _PODS, {"metadata": {"name": f"{_OTHERS}{number}"}, "spec": spec}
            )
            if over.wait(dice.uniform(0.05, 0.4)):
                return

    with beside(compete, over):
        yield


@contextmanager
def cordoning(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Cordon one node after another, each for a moment."""
    over = Event()

    def cordon() -> None:
        while not over.is_set():
            node = f"/api/v1/nodes/{dice.choice(list(nodes().node_names()))}"
            stage.cluster.api.patch(node, {"spec": {"unschedulable": True}})
            over.wait(dice.uniform(0.1, 1.0))
            stage.cluster.api.patch(node, {"spec": {"unschedulable": False}})
            over.wait(dice.uniform(0.1, 1.0))

    with beside(cordon, over):
        yield


RACES = (
    Race("one GPU each", alike),
    Race("mixed sizes", mixed),
    Race("one GPU each, API server restarted", alike, restarting),
    Race("mixed sizes, API server restarted", mixed, restarting),
    Race("one GPU each, watches cut", alike, cutting),
    Race("mixed sizes, watches cut", mixed, cutting),
    Race("mixed sizes, servers stopped meanwhile", mixed, visits=3),
    Race("mixed sizes, another client takes GPUs", mixed, competing),
    Race("mixed sizes, nodes cordoned for a moment", mixed, cordoning, visits=3),
)


def run(race: Race, stage: Stage, people: int, seed: int) -> Result:
    """Run one round, then delete its servers and pods."""
    dice = random.Random(seed)
    sizes = race.sizes(people, dice)
    persons = [Person(stage, f"p{i}", gpus, dice.random()) for i, gpus in enumerate(sizes)]
    began, since = time.monotonic(), stage.written()
    with race.trouble(stage, dice), ThreadPoolExecutor(people) as at_once:
        failed = sum(at_once.map(lambda person: person.race(race.visits), persons))
    result = _count(stage.lines(since))
    result.seconds = time.monotonic() - began
    result.failed = failed
    pods = {pod["metadata"]["name"]: pod for pod in stage.hub.pods.all()}
    ours = [pod for name, pod in pods.items() if not name.startswith(_OTHERS)]
    result.pending = sum(not pod["spec"].get("nodeName") for pod in ours)
    result.running = sum(person.is_up() for person in persons)
    _clear(stage, persons)
    wait_for(lambda: stage.reservations() == 0, timeout=60)
    result.reservations = stage.reservations()
    result.fitting = stage.twin.would_have_fitted(stage.lines(), since)
    return result


@dataclass
class Person:
    """A user who starts a server by REST and follows the advice to try again.

    Args:
        stage: The stage of the race.
        name: The user's name.
        gpus: How many GPUs the user asks for.
        delay: When the user first asks, in seconds from the start.
    """

    stage: Stage
    name: str
    gpus: int
    delay: float

    def race(self, visits: int) -> int:
        """Ask, and again after a failure; return how many starts failed."""
        time.sleep(self.delay)
        failures = 0
        for visit in range(visits):
            while (outcome := self._ask()) == "failed":
                failures += 1
            if outcome != "up":
                return failures
            if visit < visits - 1:
                self.stop()
        return failures

    def is_up(self) -> bool:
        return bool(self.stage.servers.now(self.name).get("ready"))

    def stop(self) -> None:
        server = self._server_when(lambda server: server.get("pending") != "stop")
        while server:
            self.stage.hub.api("DELETE", f"/users/{self.name}/server")
            server = self._server_when(lambda server: server.get("pending") != "stop")

    def _ask(self) -> str:
        """Start a server; return ``up``, ``refused`` or ``failed``."""
        since = self.stage.written()
        while True:
            answer = self.stage.hub.start(self.name, {"accelerator": "gpu", "gpus": self.gpus})
            if answer.status_code == 409:
                if self._told(since) == "try-again":
                    continue
                return "refused"
            server = self._server_when(lambda server: not server.get("pending"))
            if server.get("ready"):
                return "up"
            told = self._told(since)
            if told != "try-again":
                return "refused" if told else "failed"

    def _told(self, since: int) -> str:
        """Return the reason of this user's last answer since a line; "" if it was no refusal."""
        pod = f"jupyter-{self.name}"
        answers = ("refused", "taken", "accepted", "unchecked")
        mine = [x for x in self.stage.lines(since) if x["name"] == pod and x["what"] in answers]
        return str(mine[-1].get("reason", "")) if mine else ""

    def _server_when(self, true: Callable[[Server], object]) -> Server:
        return self.stage.servers.wait_for(self.name, true, timeout=300)


def _count(lines: list[Line]) -> Result:
    """Count each start's last answer: a gate may answer twice, for example for a retried pod."""
    result = Result()
    last: dict[str, str] = {}
    for line in lines:
        what, name = line["what"], line["name"]
        if what in ("reservations", "bound") or last.get(name) == what:
            continue
        last[name] = what
        if what == "refused" and line["reason"] == "try-again":
            result.again += 1
        elif what == "refused":
            result.refused += 1
        elif what in ("accepted", "unchecked"):
            result.accepted += 1
            result.unchecked += what == "unchecked"
        elif what == "taken":
            result.taken += 1
    return result


def _clear(stage: Stage, persons: list[Person]) -> None:
    with ThreadPoolExecutor(20) as at_once:
        list(at_once.map(lambda person: person.stop(), persons))
    for pod in stage.cluster.api.items(_PODS):
        with unless_gone():
            stage.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}", grace=0)
    wait_for(lambda: not stage.cluster.api.items(_PODS), timeout=60)
