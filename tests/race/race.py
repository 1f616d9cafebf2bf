"""One round of a race: people ask, something goes wrong meanwhile, and the outcome is counted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Thread

from localcluster.client import ApiError
from tests.race.replay import Line
from tests.race.servers import Server
from tests.race.stage import GPU, NAMESPACE, Stage, nodes
from tests.race.twin import Misjudged
from tests.waiting import wait_for

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_STRANGER = "stranger-"

Trouble = Callable[[Stage, random.Random], AbstractContextManager[None]]


@dataclass(frozen=True)
class Race:
    """What a race is about.

    Attributes:
        name: What the table calls it.
        sizes: How many GPUs each of so many people asks for.
        trouble: What goes on meanwhile.
        visits: How often a person who got a server stops it and asks again.
    """

    name: str
    sizes: Callable[[int, random.Random], list[int]]
    trouble: Trouble = lambda _stage, _dice: nullcontext()
    visits: int = 1


@dataclass
class Result:
    """What came of a round.

    Attributes:
        accepted: Pods that the last gate let through.
        unchecked: Those of them of which it could not say anything.
        taken: Those of them that were told afterwards that somebody else was first.
        refused: Requests that were told that there is no room.
        again: Requests that were told to try again in a few seconds.
        failed: Starts that ended otherwise: the API server was away, say.
        running: Servers that are up at the end.
        pending: Pods of people's servers that have no node at the end.
        fitting: Refused requests for which the twin's scheduler finds a node.
        reservations: Reservations that are left when all is over.
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
def _beside(trouble: Callable[[], None], over: Event | None = None) -> Iterator[None]:
    """Make trouble in a thread; *over* is set when the block ends, and the thread is waited for."""
    thread = Thread(target=trouble)
    thread.start()
    try:
        yield
    finally:
        if over is not None:
            over.set()
        thread.join()


@contextmanager
def restarting(stage: Stage, dice: random.Random) -> Iterator[None]:
    """The API server is restarted in the midst of it."""

    def restart() -> None:
        time.sleep(dice.uniform(0.2, 1.0))
        stage.cluster.restart_apiserver()

    with _beside(restart):
        yield


@contextmanager
def cutting(stage: Stage, _dice: random.Random) -> Iterator[None]:
    """The hub's watches are cut at random."""
    before = stage.cutter.cuts
    with stage.cutter.cutting():
        yield
    assert stage.cutter.cuts > before


@contextmanager
def competing(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Another client creates pods of its own, which ask nobody."""
    over = Event()

    def compete() -> None:
        for number in range(4):
            gpus = {GPU: str(dice.choice([1, 2]))}
            container = {"name": "x", "image": "x", "resources": {"limits": gpus}}
            spec = {"containers": [container], "nodeSelector": {"gpu": "yes"}}
            stage.cluster.api.create(
                _PODS, {"metadata": {"name": f"{_STRANGER}{number}"}, "spec": spec}
            )
            if over.wait(dice.uniform(0.05, 0.4)):
                return

    with _beside(compete, over):
        yield


@contextmanager
def cordoning(stage: Stage, dice: random.Random) -> Iterator[None]:
    """An administrator cordons one node after another, each for a moment."""
    over = Event()

    def cordon() -> None:
        while not over.is_set():
            node = f"/api/v1/nodes/{dice.choice(list(nodes().node_names()))}"
            stage.cluster.api.patch(node, {"spec": {"unschedulable": True}})
            over.wait(dice.uniform(0.1, 1.0))
            stage.cluster.api.patch(node, {"spec": {"unschedulable": False}})
            over.wait(dice.uniform(0.1, 1.0))

    with _beside(cordon, over):
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
    """Run one round and clear up after it."""
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
    ours = [pod for name, pod in pods.items() if not name.startswith(_STRANGER)]
    result.pending = sum(not pod["spec"].get("nodeName") for pod in ours)
    result.running = sum(person.is_up() for person in persons)
    _clear(stage, persons)
    wait_for(lambda: stage.reservations() == 0, timeout=60)
    result.reservations = stage.reservations()
    result.fitting = stage.twin.would_have_fitted(stage.lines(), since)
    return result


@dataclass
class Person:
    """Somebody with a server, by REST, who follows the advice to try again.

    Args:
        stage: Where.
        name: Whose server it is.
        gpus: How many GPUs it asks for.
        haste: When they come, in seconds from the start.
    """

    stage: Stage
    name: str
    gpus: int
    haste: float

    def race(self, visits: int) -> int:
        """Ask, and again after a failure or when told to; return how many starts failed."""
        time.sleep(self.haste)
        failures = 0
        for visit in range(visits):
            while (came_of_it := self._ask()) == "failed":
                failures += 1
            if came_of_it != "up":
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
        """What came of it: ``up``, ``refused`` or ``failed``."""
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
        """The reason of the last answer that this person got, "" where it was no refusal."""
        pod = f"jupyter-{self.name}"
        answers = ("refused", "taken", "accepted", "unchecked")
        mine = [x for x in self.stage.lines(since) if x["name"] == pod and x["what"] in answers]
        return str(mine[-1].get("reason", "")) if mine else ""

    def _server_when(self, true: Callable[[Server], object]) -> Server:
        return self.stage.servers.wait_for(self.name, true, timeout=300)


def _count(lines: list[Line]) -> Result:
    """Each start's last word: a gate may say the same twice, for a pod that is sent again, say."""
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
        try:
            stage.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}", grace=0)
        except ApiError as error:
            if error.status != 404:
                raise
    wait_for(lambda: not stage.cluster.api.items(_PODS), timeout=60)
