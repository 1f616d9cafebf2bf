"""A start whose pod waits for a node ends with the autoscaler's no, or when its time is up."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gpuspawner.kube.autoscaling import ConfigMap, Event, NodeClaim, NodePool
from gpuspawner.preflight import node_waits
from gpuspawner.preflight.decision import Decision, Reason, Refuse, Wait
from gpuspawner.preflight.node_waits import NodeWaits, longest_wait
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.scaling.objects import STATUS
from gpuspawner.scaling.outlook import CanScaleUp, Obstacle, Source, Why
from tests.unit.preflight.waits import AT_MAXIMUM, SCALE_UP, UNKNOWN, World, whys
from tests.unit.preflight.worlds import (
    GPU,
    NAMESPACE,
    node,
    pod,
    proposal,
    settle,
)

pytestmark = pytest.mark.each_python


async def test_the_autoscalers_no_ends_the_wait_at_once() -> None:
    async with World() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [Why.AT_MAXIMUM]


async def test_the_no_is_remembered_for_the_next_user() -> None:
    async with World() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        await world.refusal()
        decision = world.preflight.check(proposal("b"))

        assert isinstance(decision, Refuse)
        assert whys(decision) == [Why.AT_MAXIMUM]
        assert isinstance(world.preflight.check(proposal("c", 0, nodeSelector={"x": "y"})), Wait)


async def test_without_an_answer_the_trial_ends() -> None:
    async with World(trial=0) as world:
        world.view.wake()

        assert whys(await world.refusal()) == [Why.NO_ANSWER]


async def test_without_the_right_to_read_events_silence_ends_nothing() -> None:
    async with World(trial=0) as world:
        world.view.events._tell(NAMESPACE, is_heard=False)
        world.view.wake()
        await settle()

        assert world.still_waits()


async def test_a_toleration_that_admission_adds_counts_while_the_pod_waits() -> None:
    async with World(provider="", lasting=0) as world:
        taint = {"key": GPU, "effect": "NoSchedule"}
        template = {"metadata": {"labels": {"gpu": "a100"}}, "spec": {"taints": [taint]}}
        plain = {"metadata": {"name": "k"}, "spec": {"template": template}}
        world.view.autoscalers.put(msgspec.convert(plain, NodePool))
        world.view.put("Pod", pod("a", tolerations=[{"key": GPU, "operator": "Exists"}]))
        await settle()

        assert world.still_waits()


async def test_an_older_pods_events_say_nothing() -> None:
    async with World() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM, uid="older")

        assert world.still_waits()


async def test_a_scale_up_ends_the_trial() -> None:
    async with World(trial=0.01) as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await asyncio.wait({world.task}, timeout=0.03)

        assert world.still_waits()


async def test_a_later_no_ends_a_wait_for_a_node_that_was_coming() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await world.hears("NotTriggerScaleUp", "1 in backoff after failed scale-up")

        assert whys(await world.refusal()) == [Why.STOCK_OUT]


async def test_an_old_no_that_a_new_list_repeats_is_not_heard_twice() -> None:
    async with World() as world:
        with world.view.events.of(NAMESPACE, "b") as heard:
            event = msgspec.convert(
                {"metadata": {"name": "e", "resourceVersion": "1"}, "involvedObject": {"uid": "u"}},
                Event,
            )
            heard.put(event)
            heard.put(event)

            assert heard.take("u") == [event]


async def test_one_autoscalers_no_does_not_end_a_wait_for_anothers_node() -> None:
    async with World() as world:
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/x")
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert world.still_waits()


OVER_LIMIT = (
    "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=b)"
)


@pytest.mark.parametrize(
    ("claims", "seconds", "why"),
    [
        ([], 300.0, Why.STOCK_OUT),
        ([], 0.0, Why.IN_VAIN),
        (["a-x"], 300.0, Why.LIMIT),
    ],
    ids=["the cloud had none", "the machine never joined", "another pod took it"],
)
async def test_karpenters_no_after_a_nodeclaim_says_what_became_of_the_claim(
    monkeypatch: pytest.MonkeyPatch, claims: list[str], seconds: float, why: Why
) -> None:
    """The no itself is only about the other pools."""
    monkeypatch.setattr(node_waits, "_LAUNCH_SECONDS", seconds)
    async with World(provider="") as world:
        for name in claims:
            plain = {"metadata": {"name": name}}
            world.view.autoscalers.put(msgspec.convert(plain, NodeClaim))
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x, node/n")
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [why]


async def test_one_autoscalers_no_leaves_the_others_pools() -> None:
    async with World() as world:
        template = {"metadata": {"labels": {"gpu": "a100"}}}
        plain = {"metadata": {"name": "k"}, "spec": {"template": template}}
        world.view.autoscalers.put(msgspec.convert(plain, NodePool))
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert world.still_waits()
        assert isinstance(world.preflight.check(world.asked), Wait)


async def test_after_anothers_no_a_moment_without_hope_ends_nothing() -> None:
    def pool(ready: str) -> NodePool:
        plain = {
            "metadata": {"name": "k"},
            "spec": {"template": {"metadata": {"labels": {"gpu": "a100"}}}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }
        return msgspec.convert(plain, NodePool)

    async with World(provider="") as world:
        world.view.autoscalers.put(pool("True"))
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        for ready in ("False", "True"):
            world.view.autoscalers.put(pool(ready))
            world.view.wake()
            await settle()

        assert world.still_waits()


async def test_anothers_no_does_not_end_a_wait_whose_node_is_coming() -> None:
    async with World(lasting=0) as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        subject: Any = proposal("b").subject
        obstacle = Obstacle(Why.AT_MAXIMUM)
        world.preflight.to_come.remember(subject, Source.CLUSTER_AUTOSCALER, obstacle)
        world.view.wake()
        await settle()

        assert world.still_waits()


async def test_many_changes_in_one_moment_are_no_reason_to_give_up() -> None:
    async with World(CanScaleUp(0, 1, 5), provider="") as world:
        for _ in range(30):
            world.view.wake()
            await settle()

        assert world.still_waits()


async def test_long_looks_leave_the_hub_most_of_its_time() -> None:
    world, spent = World(), 0.0

    def slowly(_: Proposal) -> Decision:
        nonlocal spent
        began = time.monotonic()
        time.sleep(0.02)
        spent += time.monotonic() - began
        return world.wait

    world.waits = NodeWaits(world.view, world.preflight.to_come, slowly)
    others = [world.waits.until_in_vain(proposal(name), world.wait) for name in "bcd"]
    for name in "bcd":
        world.view.put("Pod", pod(name))
    began = time.monotonic()
    async with world:
        waiting = [asyncio.ensure_future(it) for it in others]
        while time.monotonic() - began < 0.6:
            world.view.wake()
            await asyncio.sleep(0.001)
        for it in waiting:
            it.cancel()

    assert 0 < spent < (time.monotonic() - began) / 4


async def test_the_end_of_all_pools_ends_the_wait() -> None:
    async with World(CanScaleUp(0, 1, 5), provider="", lasting=0) as world:
        world.view.wake()

        assert whys(await world.refusal()) == []


async def test_a_node_that_stays_on_its_way_forever_ends_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_waits, "LEAST_MINUTES", -1)
    async with World(CanScaleUp(0, 1, minutes=-1)) as world:
        status = (
            "autoscalerStatus: Running\nnodeGroups:\n- name: g\n"
            "  health: {cloudProviderTarget: 1, maxSize: 1}\n"
        )
        meta = {"namespace": STATUS[0], "name": STATUS[1]}
        plain = {"metadata": meta, "data": {"status": status}}
        world.view.autoscalers.put(msgspec.convert(plain, ConfigMap))
        world.view.wake()

        assert Why.IN_VAIN in whys(await world.refusal())


async def test_a_wait_that_the_hub_is_about_to_end_says_nothing_about_others() -> None:
    async with World(CanScaleUp(0, 1, 5)) as world:
        wait = world.waits.until_in_vain(world.asked, world.wait, most=0.01)
        refusal = await asyncio.wait_for(wait, 5)

        assert (refusal.reason, whys(refusal)) == (Reason.BUSY, [Why.IN_VAIN])
        assert isinstance(world.preflight.check(proposal("b")), Wait)


async def test_a_pod_that_gets_its_node_waits_no_longer_and_its_time_is_measured() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        young = node("new", 1)
        young["metadata"] = {"name": "new", "creationTimestamp": datetime.now(UTC).isoformat()}
        world.view.put("Node", young)
        world.view.put("Pod", pod("a", on="new"))
        usual = world.preflight.to_come.pools.usual
        async with asyncio.timeout(10):
            while usual.minutes("gpus") is None:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)

        assert world.still_waits()
        assert usual.minutes("") is not None


async def test_after_a_long_rest_the_first_look_ends_no_wait() -> None:
    async with World() as world:
        await asyncio.sleep(0.02)
        world.view.remove_pod("a")
        await settle()

        assert world.still_waits()


async def test_an_older_node_says_nothing_about_the_time_of_a_new_one() -> None:
    async with World() as world:
        world.view.remove_pod("x")
        world.view.put("Pod", pod("a", on="n"))
        await settle()

        assert world.preflight.to_come.pools.usual.minutes("") is None


def test_the_longest_wait_is_twice_the_usual_time() -> None:
    assert longest_wait(CanScaleUp(0, 1, 15)) == 2 * 15 * 60 + 60


def test_a_node_that_others_awaited_for_seconds_may_take_minutes_the_next_time() -> None:
    assert longest_wait(CanScaleUp(0, 1, 0.2)) == 20 * 60 + 60
    assert longest_wait(UNKNOWN) == 20 * 60 + 60
