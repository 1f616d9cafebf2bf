"""A race for fifteen GPUs: users ask by REST while things go wrong; then it counts the outcomes."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.fixtures.bare_cluster import bare
from tests.race import troubles
from tests.race.recording import Line, Recording
from tests.race.stage import ACCELERATOR, Result, Stage, beside, nodes, staged
from tests.race.twin import Twin, twin_on
from tests.waiting import wait_for

NAMESPACE = "race"
_CONFIGURATION = """
from tests.race import recording
recording.into({recording!r}, {namespace!r})
c.KubeSpawner.start_timeout = 120
"""
_ANSWERS = ("refused", "taken", "accepted", "unchecked")


@dataclass(frozen=True)
class GpuRace:
    """The settings of a race.

    Attributes:
        sizes: From the number of users, how many GPUs each asks for.
        trouble: What goes wrong meanwhile.
        visits: How often a user who got a server asks; in between, the user stops it.
    """

    name: str
    sizes: Callable[[int, random.Random], list[int]]
    trouble: troubles.Trouble = troubles.undisturbed
    visits: int = 1


def alike(people: int, _dice: random.Random) -> list[int]:
    return [1] * people


def mixed(people: int, dice: random.Random) -> list[int]:
    return dice.choices([1, 1, 2, 3, 4, 8], k=people)


RACES = (
    GpuRace("one GPU each", alike),
    GpuRace("mixed sizes", mixed),
    GpuRace("one GPU each, API server restarted", alike, troubles.restarting_api_server),
    GpuRace("mixed sizes, API server restarted", mixed, troubles.restarting_api_server),
    GpuRace("one GPU each, watches cut", alike, troubles.cutting),
    GpuRace("mixed sizes, watches cut", mixed, troubles.cutting),
    GpuRace("mixed sizes, servers stopped meanwhile", mixed, visits=3),
    GpuRace("mixed sizes, another client takes GPUs", mixed, troubles.competing),
    GpuRace("mixed sizes, nodes cordoned for a moment", mixed, troubles.cordoning, visits=3),
)


@contextmanager
def racing(folder: Path, people: int) -> Iterator[Callable[[GpuRace, int], Result]]:
    """Set everything up, and yield what runs a round from a seed."""
    with (
        bare(folder / "twin") as cluster,
        twin_on(cluster) as twin,
        recorded_stage(folder) as (stage, recording),
    ):
        yield lambda race, seed: run(race, stage, recording, twin, people, seed)


@contextmanager
def recorded_stage(folder: Path) -> Iterator[tuple[Stage, Recording]]:
    """Set up a stage whose hub records what its view saw and its preflight answered."""
    recording = Recording(folder / "recording.jsonl")
    recording.path.touch()
    lines = _CONFIGURATION.format(recording=str(recording.path), namespace=NAMESPACE)
    with (
        staged(folder, NAMESPACE, nodes(), lines + ACCELERATOR) as stage,
        stage.servers.watching(),
    ):
        yield stage, recording


def run(
    race: GpuRace, stage: Stage, recording: Recording, twin: Twin, people: int, seed: int
) -> Result:
    """Run one round, then delete its servers and pods.

    docs/explanation/promises.md explains what the result counts; *unchecked* are those accepted
    pods that the last gate couldn't check.
    """
    dice = random.Random(seed)
    sizes, since = race.sizes(people, dice), recording.written()
    persons = [
        Person(stage, recording, f"p{i}", gpus, dice.random()) for i, gpus in enumerate(sizes)
    ]
    with beside(partial(race.trouble, stage, dice)), ThreadPoolExecutor(people) as at_once:
        failed = sum(at_once.map(lambda person: person.race(race.visits), persons))
    running = sum(person.is_up() for person in persons)
    result = Result(_counted(recording.lines(since)))
    ours = [
        it for it in stage.hub.pods.all() if not it["metadata"]["name"].startswith(troubles.OTHERS)
    ]
    pending = [it["metadata"]["name"] for it in ours if not it["spec"].get("nodeName")]
    with ThreadPoolExecutor(20) as at_once:
        list(at_once.map(lambda person: person.stop(), persons))
    stage.delete_pods()
    with suppress(TimeoutError):
        wait_for(lambda: not stage.promises() and not stage.hub.pods.all())
    left = Counter(stage.promises()) + Counter(pods=len(stage.hub.pods.all()))
    fitting = twin.would_have_fitted(recording.lines(), since)
    result.counts.update(failed=failed, running=running, pending=len(pending))
    result.counts.update({"would have fitted": len(fitting), "left": sum(left.values())})
    result.wrong += [f"{name} is accepted and Pending" for name in pending]
    result.wrong += [f"{number} {it} are left" for it, number in left.items()]
    if race.trouble not in (troubles.competing, troubles.cordoning) and result.counts["taken"]:
        result.wrong.append(f"{result.counts['taken']} lost their GPUs, and nobody else took any")
    result.wrong += [str(it) for it in fitting]
    return result


@dataclass
class Person:
    """A user who starts a server by REST and follows the advice to try again.

    Attributes:
        gpus: How many GPUs the user asks for.
        delay: When the user first asks, in seconds from the start.
    """

    stage: Stage
    recording: Recording
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
        while self.stage.servers.until_idle(self.name):
            self.stage.hub.api("DELETE", f"/users/{self.name}/server")

    def _ask(self) -> str:
        """Start a server; return ``up``, ``refused`` or ``failed``."""
        since = self.recording.written()
        while True:
            answer = self.stage.hub.start(self.name, {"accelerator": "gpu", "gpus": self.gpus})
            refused_at_once = answer.status_code == 409
            if not refused_at_once and self.stage.servers.until_idle(self.name).get("ready"):
                return "up"
            told = self._told(since)
            if told != "try-again":
                return "refused" if told or refused_at_once else "failed"

    def _told(self, since: int) -> str:
        """Return the reason of this user's last answer since a line; "" if it was no refusal."""
        pod, lines = f"jupyter-{self.name}", self.recording.lines(since)
        return next(
            (it.reason for it in reversed(lines) if it.name == pod and it.what in _ANSWERS), ""
        )


def _counted(lines: Iterable[Line]) -> Counter[str]:
    """Count each start's last answer: a gate may answer twice, for example for a retried pod."""
    counts = Counter(dict.fromkeys(("accepted", "unchecked", "taken", "refused", "again"), 0))
    last: dict[str, str] = {}
    for line in lines:
        if line.what == "bound" or last.get(line.name) == line.what:
            continue
        last[line.name] = line.what
        if line.what == "refused" and line.reason == "try-again":
            counts["again"] += 1
        elif line.what in _ANSWERS:
            counts[line.what] += 1
            counts["accepted"] += line.what == "unchecked"
    return counts
