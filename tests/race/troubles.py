"""What goes wrong in the races."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event

from tests.hub.running import RunningHub
from tests.race.stage import Stage, beside, nodes, pod_asking_for
from tests.waiting import wait_for

Trouble = Callable[[Stage, random.Random], AbstractContextManager[None]]
"""Goes on while its block lasts."""

OTHERS = "other-"
"""How the names of pods begin that aren't a hub's."""
_PODS_AT_RESTART = 5


def undisturbed(_stage: Stage, _dice: random.Random) -> AbstractContextManager[None]:
    return nullcontext()


@contextmanager
def cutting(stage: Stage, dice: random.Random, idle: float = 0.15) -> Iterator[None]:
    """Cut the hub's watches at random: connections without a request for *idle* seconds."""
    before = stage.proxy.cuts
    with stage.proxy.cutting_idle(dice, idle=idle):
        yield
    assert stage.proxy.cuts > before


@contextmanager
def restarting_api_server(
    stage: Stage, dice: random.Random, times: int = 1, after: tuple[float, float] = (0.2, 1.0)
) -> Iterator[None]:
    """Restart the API server, each time after so many seconds."""

    def restart(_over: Event) -> None:
        for _ in range(times):
            time.sleep(dice.uniform(*after))
            with stage.away():
                stage.cluster.restart_apiserver()

    with beside(restart):
        yield


@contextmanager
def restarting_hub(
    stage: Stage,
    dice: random.Random,
    ends: tuple[Callable[[RunningHub], None], ...],
    least: float = 0.0,
) -> Iterator[None]:
    """End the hub, once in each of these ways, while some servers run and others start.

    Each time, it goes on for at least so many seconds before.
    """

    def restart(_over: Event) -> None:
        for end in ends:
            with suppress(TimeoutError):
                wait_for(lambda: len(stage.hub.pods.all()) >= _PODS_AT_RESTART, timeout=10)
            time.sleep(least + dice.uniform(0, 2))
            with stage.away():
                end(stage.hub)
                begin_again(stage.hub)

    with beside(restart):
        yield


def begin_again(hub: RunningHub) -> None:
    hub.begin()
    hub.until_it_serves()


@contextmanager
def competing(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Create pods as another client, which asks no gate."""

    def compete(_over: Event) -> None:
        for number in range(4):
            pod = pod_asking_for(
                dice.choice([1, 2]), f"{OTHERS}{number}", nodeSelector={"gpu": "yes"}
            )
            stage.cluster.api.create(stage.hub.pods.path, pod)
            time.sleep(dice.uniform(0.05, 0.4))

    with beside(compete):
        yield


@contextmanager
def cordoning(stage: Stage, dice: random.Random) -> Iterator[None]:
    """Cordon one node after another, each for a moment."""

    def cordon(over: Event) -> None:
        while not over.is_set():
            node = f"/api/v1/nodes/{dice.choice(list(nodes().node_names()))}"
            for unschedulable in (True, False):
                stage.cluster.api.patch(node, {"spec": {"unschedulable": unschedulable}})
                over.wait(dice.uniform(0.1, 1.0))

    with beside(cordon):
        yield
