"""What goes wrong in the races; each goes on beside the race until its event is set."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event

from tests.hub.running import RunningHub
from tests.race.stage import Stage, nodes, pod_asking_for
from tests.waiting import wait_for

Trouble = Callable[[Stage, random.Random, Event], None]

OTHERS = "other-"
"""How the names of pods begin that aren't a hub's."""
_PODS_AT_RESTART = 5


def undisturbed(_stage: Stage, _dice: random.Random, _over: Event) -> None:
    """Let nothing go wrong."""


def cutting(stage: Stage, dice: random.Random, over: Event, idle: float = 0.15) -> None:
    """Cut the hub's watches at random: connections without a request for *idle* seconds."""
    before = stage.proxy.cuts
    with stage.proxy.cutting_idle(dice, idle=idle):
        over.wait()
    assert stage.proxy.cuts > before


def restarting_api_server(
    stage: Stage,
    dice: random.Random,
    _over: Event,
    times: int = 1,
    after: tuple[float, float] = (0.2, 1.0),
) -> None:
    """Restart the API server, each time after so many seconds."""
    for _ in range(times):
        time.sleep(dice.uniform(*after))
        with stage.away():
            stage.cluster.restart_apiserver()


def restarting_hub(
    stage: Stage,
    dice: random.Random,
    _over: Event,
    ends: tuple[Callable[[RunningHub], None], ...],
    after: tuple[float, float] = (0.0, 2.0),
) -> None:
    """End the hub once in each of these ways, so many seconds after some servers are there."""
    for end in ends:
        with suppress(TimeoutError):
            wait_for(lambda: len(stage.hub.pods.all()) >= _PODS_AT_RESTART, timeout=10)
        time.sleep(dice.uniform(*after))
        with stage.away():
            end(stage.hub)
            begin_again(stage.hub)


def begin_again(hub: RunningHub) -> None:
    hub.begin()
    hub.until_it_serves()


def competing(stage: Stage, dice: random.Random, _over: Event) -> None:
    """Create pods as another client, which asks no gate."""
    for number in range(4):
        name, gpus = f"{OTHERS}{number}", dice.choice([1, 2])
        pod = pod_asking_for(gpus, name, nodeSelector={"gpu": "yes"})
        stage.cluster.api.create(stage.hub.pods.path, pod)
        time.sleep(dice.uniform(0.05, 0.4))


def cordoning(stage: Stage, dice: random.Random, over: Event) -> None:
    """Cordon one node after another, each for a moment."""
    while not over.is_set():
        node = f"/api/v1/nodes/{dice.choice(list(nodes().node_names()))}"
        for unschedulable in (True, False):
            stage.cluster.api.patch(node, {"spec": {"unschedulable": unschedulable}})
            over.wait(dice.uniform(0.1, 1.0))
