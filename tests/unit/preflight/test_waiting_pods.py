"""Whether the pod that waits for a node is still there, as far as is known."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.kube.objects import Undecodable
from gpuspawner.preflight import in_view
from gpuspawner.preflight.decision import Reason
from gpuspawner.scaling.outlook import Why
from tests.unit.preflight.waits import World, whys
from tests.unit.preflight.worlds import (
    NAMESPACE,
    pod,
    settle,
)

pytestmark = pytest.mark.each_python


async def test_a_start_ends_with_its_pod_before_and_after_it_gets_a_node() -> None:
    for nodes in ((), ("n",)):
        async with World() as world:
            for name in nodes:
                world.view.put("Pod", pod("a", on=name))
                await settle()
            world.view.remove_pod("a")

            assert (await world.refusal()).reason is Reason.DELETED


async def test_while_contact_is_lost_a_pod_that_is_missing_is_not_taken_for_gone() -> None:
    async with World() as world:
        world.view.touch = False
        world.view.remove_pod("a")
        await asyncio.sleep(0.02)
        world.view.wake()
        await settle()

        assert world.still_waits()


async def test_a_pod_that_cant_be_decoded_is_not_taken_for_gone() -> None:
    async with World() as world:
        world.view.state.put(Undecodable("Pod", NAMESPACE, "a", "", "an odd field"))
        world.view.wake()
        await asyncio.sleep(0.02)
        world.view.wake()
        await settle()

        assert world.still_waits()


async def test_a_pod_that_came_and_went_unseen_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_view, "LEFT_SECONDS", 0.01)
    world = World()
    wait = world.waits.until_in_vain(world.asked, world.wait)

    assert (await asyncio.wait_for(wait, 5)).reason is Reason.DELETED


async def test_an_older_pod_that_the_view_still_showed_is_not_taken_for_the_one_that_waits() -> (
    None
):
    async with World() as world:
        world.view.remove_pod("a")
        world.view.wake()
        await settle()
        world.view.put("Pod", pod("a"))
        await asyncio.sleep(0.02)
        world.view.wake()
        await settle()

        assert world.still_waits()


async def test_an_older_pod_that_is_ending_is_not_taken_for_the_one_that_waits() -> None:
    world = World(trial=0)
    older = pod("a", on="n")
    older["metadata"] = {
        "name": "a",
        "namespace": NAMESPACE,
        "uid": "older",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    world.view.put("Pod", older)
    task = asyncio.create_task(world.waits.until_in_vain(world.asked, world.wait))
    await settle()
    world.view.remove_pod("a")
    world.view.put("Pod", pod("a"))

    assert whys(await asyncio.wait_for(task, 5)) == [Why.NO_ANSWER]
