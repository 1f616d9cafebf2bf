"""A start whose pod the hub never sees ends by its first limit."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.cluster.pod_events import Heard
from gpuspawner.launch.farewells import Farewells
from gpuspawner.launch.usual import UsualSteps
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import Start
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.spawn.launching import Launching
from gpuspawner.spawn.refusal import Refusal
from gpuspawner.spawn.story import Story


async def changed(_: float) -> None:
    await asyncio.sleep(0)


async def test_a_pod_that_came_and_went_unseen_ends_the_start() -> None:
    state = SimpleNamespace(images=NodeImages(), pods={}, unbound_pods={}, undecodable=())
    runtime: Any = SimpleNamespace(
        view=SimpleNamespace(changed=changed, state=state, in_touch=lambda: False),
        avoided=None,
        farewells=Farewells(),
        usual_steps=UsualSteps(),
    )
    proposal = SimpleNamespace(key=("jhub", "jupyter-ann"), grant=Grant())
    attempt: Any = SimpleNamespace(
        choice=SimpleNamespace(proposal=proposal),
        decision=Start(Grant()),
        is_promised=True,
        starting=60.0,
        seconds_for_a_node=0,
    )
    spawner: Any = SimpleNamespace(
        user=SimpleNamespace(name="ann"),
        scheduling_timeout=0.01,
        preparing_timeout=60.0,
        http_timeout=30,
    )

    async def judge() -> None:
        """Nothing is known of the pod."""

    unseen: Any = SimpleNamespace(known_pod=lambda: None)
    launching = Launching(spawner, unseen, runtime, Story(), attempt)

    with pytest.raises(Refusal, match="hasn't given your server a machine in time"):
        await asyncio.wait_for(launching.until_failed(Heard(), judge), 5)
