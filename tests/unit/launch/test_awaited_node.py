"""A pod gets no node if its autoscaler says no, or its time is up."""

import asyncio
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest

from gpuspawner.cluster.autoscaler_objects import STATUS
from gpuspawner.cluster.background import TurnsToLook
from gpuspawner.kube.autoscaling import Event, NodeClaim, NodePool
from gpuspawner.launch.awaited_node import LASTING_SECONDS, AwaitedNode, NodeAfterQueue
from gpuspawner.launch.unscheduled import question
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start, Wait
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.scaling.pools import Pools
from gpuspawner.scaling.usual_times import TRIAL_SECONDS, longest_wait
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.source import Choice
from tests.unit.makers.launches import UNSCHEDULABLE, answered
from tests.unit.makers.outlooks import status_map
from tests.unit.makers.storage import HOME, LOCAL, NOW, STORAGE_KINDS, claim, volume
from tests.unit.makers.worlds import (
    ALONE,
    GPU,
    NAMESPACE,
    StillView,
    labelled,
    node,
    pod,
    proposal,
    settle,
)

pytestmark = pytest.mark.usefixtures("clock")

AT_MAXIMUM = "pod didn't trigger scale-up: 1 max node group size reached"
SCALE_UP = "pod triggered scale-up: [{gpus 0->1 (max: 4)}]"
UNKNOWN, KARPENTER = MayScaleUp(Source.NODES), MayScaleUp(Source.KARPENTER)


def whys(decision):
    return [it.why for it in decision.obstacles]


class World:
    """A full node, and a pod that waits for another one; a runtime for what waits."""

    def __init__(self, scale_up=UNKNOWN, provider="aws:///z/i-1", **spec):
        full = ("Pod", pod("x", 1, on="n"))
        self.view = StillView(("Node", node("n", 1, providerID=provider)), full)
        pools = Pools(self.view.state, self.view.autoscalers)
        self.preflight = Preflight(self.view, pools=pools)
        self.decide = self.preflight.decider.check
        self.turns = TurnsToLook(self.view.wake)
        self.asked = proposal("a", **spec)
        self.wait = Wait(self.asked.grant, scale_up)
        self._sent = 0

    async def __aenter__(self):
        self.view.put("Pod", self.asked.pod)
        self.task = asyncio.create_task(self.in_vain())
        await settle()
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def in_vain(self, name="a", trial=TRIAL_SECONDS, most=math.inf):
        """Return why no node comes for a pod, once none does."""
        asked = self.asked if name == "a" else proposal(name)
        with self.view.events.of(*asked.key) as heard:
            node = self.awaited(heard, asked, self.wait, trial, most)
            return await answered(self.view, node.look)

    def awaited(self, heard, asked, wait, trial=TRIAL_SECONDS, most=math.inf):
        return AwaitedNode(self, heard, asked, wait, trial, most)

    def tell(self, pod, reason, message, uid=""):
        """Let an event about a pod be heard."""
        self._sent += 1
        number = str(self._sent)
        plain = {
            "metadata": {"namespace": NAMESPACE, "name": number, "resourceVersion": number},
            "involvedObject": {"name": pod, "uid": uid or pod},
            "reason": reason,
            "message": message,
        }
        self.view.events.hear(msgspec.convert(plain, Event))

    async def hears(self, reason, message, uid=""):
        self.tell("a", reason, message, uid)
        self.view.wake()
        await settle()

    async def refusal(self):
        return await asyncio.wait_for(self.task, 3600)

    async def still_waits(self, seconds=0):
        """Whether the start waits after some more seconds too."""
        await asyncio.sleep(seconds)
        await settle()
        return not self.task.done()

    def grows(self, ready="", **template):
        """Let a NodePool of Karpenter's make A100s; *ready* is the status of that condition."""
        conditions = [{"type": "Ready", "status": ready}] if ready else []
        plain = {
            "metadata": {"name": "k"},
            "spec": {"template": {"metadata": {"labels": {"gpu": "a100"}}, "spec": template}},
            "status": {"conditions": conditions},
        }
        self.view.autoscalers.put(msgspec.convert(plain, NodePool))


async def test_the_autoscalers_no_ends_the_wait_at_once_and_is_remembered_for_the_next(clock):
    async with World() as world:
        began = clock.now
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]
        assert clock.now == began
        assert whys(world.decide(proposal("b"))) == [WhyNoNode.AT_MAXIMUM]
        assert isinstance(world.decide(proposal("c", 0, nodeSelector={"x": "y"})), Wait)


# Whether the autoscaler has looked


def written(world, number, target=1, health="Healthy", group="Healthy"):
    """Let Cluster Autoscaler write the status of a group that may have one node, after a look."""
    at = datetime.now(UTC) + timedelta(seconds=number)
    text = (
        f"time: {at:%Y-%m-%d %H:%M:%S} +0000 UTC\nautoscalerStatus: Running\nclusterWide:\n"
        f"  health:\n    status: {health}\nnodeGroups:\n- name: g\n"
        f"  health:\n    status: {group}\n    nodeCounts: {{registered: {{total: {target}}}}}\n"
        f"    cloudProviderTarget: {target}\n    maxSize: 1\n"
    )
    world.view.autoscalers.put(status_map(text))
    world.view.wake()


def on_gke(world=None):
    """The only node group is at its maximum, but the autoscaler may create others."""
    world = world or World()
    world.view.put("Node", labelled(node("m", 0), {"cloud.google.com/gke-nodepool": "core"}))
    written(world, 0)
    return world


async def test_a_listed_pool_below_its_maximum_is_waited_for_as_long_as_for_a_node(clock):
    world, began = World(MayScaleUp(Source.CLUSTER_AUTOSCALER), provider=""), clock.now
    written(world, 0, target=0)
    async with world:
        assert await world.still_waits(10 * TRIAL_SECONDS)
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(5 * TRIAL_SECONDS)

        assert whys(await world.refusal()) == [WhyNoNode.IN_VAIN]
        assert clock.now - began >= longest_wait(world.wait.scale_up)


async def test_a_silent_autoscaler_of_a_pool_that_may_be_ill_is_only_tried(clock):
    world, began = World(MayScaleUp(Source.CLUSTER_AUTOSCALER), provider=""), clock.now
    written(world, 0, target=0, group="Unhealthy")
    async with world:
        for number in (30, 60):
            assert await world.still_waits(TRIAL_SECONDS / 3)
            written(world, number, target=0, group="Unhealthy")

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS + 1


async def test_a_silent_karpenter_is_only_tried(clock):
    async with of_karpenter() as world:
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS + 1


async def test_a_status_that_is_read_again_shows_no_look_and_nothing_is_remembered_without():
    async with on_gke() as world:
        text = world.view.autoscalers.autoscaler_status
        for _ in range(3):  # as after lost watches
            world.view.autoscalers.remove("ConfigMap", *STATUS)
            assert await world.still_waits(2)
            world.view.autoscalers.put(status_map(text))
            assert await world.still_waits(4 * TRIAL_SECONDS)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.decide(proposal("b")), Wait)


@pytest.mark.parametrize(
    ("last", "looks"),
    [(0, [(95, 95), (95, 190)]), (-3600, [(TRIAL_SECONDS - 10, 50), (200, 180), (10, 190)])],
    ids=["it looks seldom", "it comes back after an hour"],
)
async def test_a_trial_goes_on_until_the_autoscaler_has_looked_while_the_pod_was_there(last, looks):
    """Its first look may have begun before that."""
    world = on_gke()
    written(world, last)
    async with world:
        for seconds, number in looks:
            assert await world.still_waits(seconds)
            written(world, number)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.decide(proposal("b")), Refuse)


async def test_an_autoscaler_of_an_ill_cluster_does_not_look():
    async with on_gke() as world:
        for number in range(1, 5):
            written(world, number, health="Unhealthy")
            assert await world.still_waits(TRIAL_SECONDS)


async def test_an_autoscaler_that_has_gone_is_not_waited_for_nor_taken_for_one_that_looked(clock):
    async with on_gke() as world:
        assert await world.still_waits(TRIAL_SECONDS / 2)
        world.view.autoscalers.remove("ConfigMap", *STATUS)
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS
        assert isinstance(world.decide(proposal("b")), Wait)


@pytest.mark.parametrize("seconds", [TRIAL_SECONDS, 300], ids=["usual", "an administrator's"])
async def test_without_an_answer_the_trial_ends_after_its_time(clock, seconds):
    world, began = World(), clock.now
    world.view.put("Pod", pod("a"))

    assert whys(await world.in_vain(trial=seconds)) == [WhyNoNode.NO_ANSWER]
    assert seconds <= clock.now - began <= seconds + 1


async def test_without_the_right_to_read_events_silence_ends_nothing():
    async with World() as world:
        world.view.events.end(NAMESPACE)

        assert await world.still_waits(2 * TRIAL_SECONDS)


async def test_a_toleration_that_admission_adds_counts_while_the_pod_waits():
    async with World(provider="") as world:
        world.grows(taints=[{"key": GPU, "effect": "NoSchedule"}])
        world.view.put("Pod", pod("a", tolerations=[{"key": GPU, "operator": "Exists"}]))

        assert await world.still_waits(2 * LASTING_SECONDS)


async def test_an_older_pods_events_say_nothing():
    async with World() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM, uid="older")

        assert await world.still_waits()


IN_BACKOFF = "1 in backoff after failed scale-up"


async def test_a_later_no_ends_a_wait_for_a_node_that_was_coming():
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await world.hears("NotTriggerScaleUp", IN_BACKOFF)

        assert whys(await world.refusal()) == [WhyNoNode.STOCK_OUT]


OVER_LIMIT = (
    "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=b)"
)
AT_RISK = "associated with this pod failed: {}. Pod is at risk of not being scheduled."


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        ("GCE quota exceeded", WhyNoNode.QUOTA),
        ("GCE out of resources", WhyNoNode.STOCK_OUT),
        ("IP space exhausted", WhyNoNode.LIMIT),
        ("Invalid Reservation: x", WhyNoNode.REFUSED),
    ],
)
async def test_gkes_failed_scale_up_says_why_no_node_comes_once_no_other_zone_helps(failure, why):
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(2 * TRIAL_SECONDS)  # the trial is over
        await world.hears("FailedScaleUp", f"Node scale up in zones a {AT_RISK.format(failure)}")
        assert await world.still_waits(LASTING_SECONDS)
        await world.hears("NotTriggerScaleUp", IN_BACKOFF)

        assert whys(await world.refusal()) == [why]


async def test_a_failed_scale_up_says_nothing_of_a_later_one_in_another_zone():
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await world.hears("FailedScaleUp", AT_RISK.format("GCE quota exceeded"))
        await world.hears("TriggeredScaleUp", SCALE_UP)

        assert whys(await world.refusal()) == [WhyNoNode.IN_VAIN]


@pytest.mark.parametrize(
    ("status", "reason", "why"),
    [
        ("Unknown", "SubscriptionQuotaReached", WhyNoNode.QUOTA),
        ("Unknown", "AwaitingReconciliation", WhyNoNode.STOCK_OUT),
        ("True", "Launched", WhyNoNode.STOCK_OUT),
    ],
)
async def test_a_nodeclaim_that_cannot_be_launched_says_why_before_it_is_gone(status, reason, why):
    launched = {"type": "Launched", "status": status, "reason": reason, "message": "no"}
    claim = {"metadata": {"name": "a-x"}, "status": {"conditions": [launched]}}
    async with World(provider="") as world:
        world.view.autoscalers.put(msgspec.convert(claim, NodeClaim))
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x")
        world.view.autoscalers.remove("NodeClaim", "", "a-x")
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [why]


async def test_one_autoscalers_no_does_not_end_a_wait_for_anothers_node():
    async with World() as world:
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/x")
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert await world.still_waits()


@pytest.mark.parametrize(
    ("claims", "seconds", "why"),
    [([], 290, WhyNoNode.STOCK_OUT), ([], 310, WhyNoNode.IN_VAIN), (["a-x"], 290, WhyNoNode.LIMIT)],
    ids=["the cloud had none", "the machine never joined", "another pod took it"],
)
async def test_karpenters_no_after_a_nodeclaim_says_what_became_of_the_claim(claims, seconds, why):
    """The no itself is only about the other pools."""
    async with World(provider="") as world:
        for name in claims:
            plain = {"metadata": {"name": name}}
            world.view.autoscalers.put(msgspec.convert(plain, NodeClaim))
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x, node/n")
        assert await world.still_waits(seconds)
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [why]


def rival(reason="Unschedulable"):
    """Another pod that waits."""
    return {**pod("b"), "status": {"conditions": [{**UNSCHEDULABLE, "reason": reason}]}}


def of_karpenter(*others, scale_up=KARPENTER):
    """A world in which Karpenter may make the node, for other pods that wait too."""
    world = World(scale_up, provider="")
    world.grows()
    for other in others:
        world.view.put("Pod", other)
    return world


@pytest.mark.parametrize("scale_up", [KARPENTER, CanScaleUp(0, None, 5)])
async def test_karpenters_no_counts_only_after_its_next_rounds_if_other_pods_wait_too(
    clock, scale_up
):
    async with of_karpenter(rival(), scale_up=scale_up) as world:
        began = clock.now
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert TRIAL_SECONDS <= clock.now - began <= TRIAL_SECONDS + 2
        assert whys(world.decide(proposal("c"))) == [WhyNoNode.LIMIT]


async def test_another_autoscalers_yes_leaves_karpenters_no_for_when_that_one_fails(clock):
    async with of_karpenter(rival()) as world:
        await world.hears("FailedScheduling", OVER_LIMIT)
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(5 * TRIAL_SECONDS)
        began = clock.now
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert WhyNoNode.LIMIT in whys(await world.refusal())
        assert clock.now - began <= 2


async def test_karpenters_next_round_brings_a_node_after_a_no():
    async with of_karpenter(rival()) as world:
        await world.hears("FailedScheduling", OVER_LIMIT)
        assert await world.still_waits(TRIAL_SECONDS / 2)
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x")

        assert await world.still_waits(5 * TRIAL_SECONDS)


async def test_karpenters_no_counts_in_the_end_if_it_says_so_again_and_again(clock):
    """It does each five minutes; a trial may be longer."""
    async with of_karpenter(rival()) as world:
        began = clock.now
        for _ in range(4):
            await world.hears("FailedScheduling", OVER_LIMIT)
            await asyncio.sleep(TRIAL_SECONDS / 2)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert clock.now - began <= 2 * TRIAL_SECONDS


async def test_no_time_counts_for_a_node_while_contact_with_the_api_server_is_lost(clock):
    """An autoscaler may have answered then, and its silence isn't remembered against others."""
    async with World() as world:
        began = clock.now
        assert await world.still_waits(TRIAL_SECONDS / 2)
        world.view.touch = False
        assert await world.still_waits(5 * TRIAL_SECONDS)
        world.view.touch = True
        world.view.wake()

        assert isinstance(world.decide(proposal("c")), Wait)
        assert await world.still_waits(TRIAL_SECONDS / 3)
        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert round((clock.now - began) / TRIAL_SECONDS) == 6


@pytest.mark.parametrize("unseen", [["NodePool", "NodeClaim"], ["NodePool"]])
async def test_karpenter_may_not_tell_each_of_many_that_its_machine_comes(unseen, clock):
    """It tells ten at once, and the others two minutes later."""
    world = World(MayScaleUp(Source.UNREAD), provider="")
    for kind in unseen:
        world.view.autoscalers.mark_unknown(kind)
    world.view.put("Pod", pod("b"))
    other, began = asyncio.create_task(world.in_vain("b")), clock.now
    async with world:
        world.tell("b", "Nominated", "Pod should schedule on: nodeclaim/x")
        assert await world.still_waits(2.5 * TRIAL_SECONDS)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= 5 * TRIAL_SECONDS
    other.cancel()


@pytest.mark.parametrize(
    ("unseen", "told"),
    [
        ([], ("Nominated", "Pod should schedule on: nodeclaim/x")),
        (["NodeClaim"], ("TriggeredScaleUp", SCALE_UP)),
    ],
    ids=["NodeClaims would show it", "Cluster Autoscaler tells each"],
)
async def test_silence_beside_anothers_yes_is_a_no_where(unseen, told, clock):
    world = World(provider="aws:///z/i-1")
    for kind in unseen:
        world.view.autoscalers.mark_unknown(kind)
    world.view.put("Pod", pod("b"))
    other, began = asyncio.create_task(world.in_vain("b")), clock.now
    async with world:
        world.tell("b", *told)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= 1.5 * TRIAL_SECONDS
    other.cancel()


async def test_a_start_that_ends_before_karpenters_next_rounds_says_what_karpenter_said():
    async with of_karpenter(rival()) as world:
        task = asyncio.create_task(world.in_vain(most=TRIAL_SECONDS / 2))
        await settle()
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await task) == [WhyNoNode.LIMIT]


@pytest.mark.parametrize("others", [[], [rival("SchedulingGated")]])
async def test_without_other_pods_karpenters_no_counts_at_once(clock, others):
    async with of_karpenter(*others) as world:
        began = clock.now
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert clock.now == began


async def test_one_autoscalers_no_leaves_the_others_pools():
    async with World() as world:
        world.grows()
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert await world.still_waits()
        assert isinstance(world.decide(world.asked), Wait)


async def test_after_anothers_no_a_moment_without_hope_ends_nothing():
    async with World(provider="") as world:
        world.grows("True")
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        for ready in ("False", "True"):
            world.grows(ready)
            world.view.wake()
            await settle()

        assert await world.still_waits()


async def test_anothers_no_does_not_end_a_wait_whose_node_is_coming():
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        subject, obstacle = proposal("b").subject, Obstacle(WhyNoNode.AT_MAXIMUM)
        world.preflight.to_come.remember(subject, Source.CLUSTER_AUTOSCALER, obstacle)

        assert await world.still_waits(2 * LASTING_SECONDS)


async def test_many_changes_in_one_moment_are_no_reason_to_give_up():
    async with World(CanScaleUp(0, 1, 5), provider="") as world:
        for _ in range(30):
            world.view.wake()
            await settle()

        assert await world.still_waits()


async def test_long_looks_leave_the_hub_most_of_its_time(clock):
    world, began = World(), clock.now
    spent = 0.0

    def slowly(_):
        nonlocal spent
        clock.now += 0.02
        spent += 0.02
        return world.wait

    world.preflight.decider.check_sent = slowly
    others = [world.in_vain(name) for name in "bcd"]
    for name in "bcd":
        world.view.put("Pod", pod(name))
    async with world, asyncio.TaskGroup() as group:
        waiting = [group.create_task(it) for it in others]
        while clock.now - began < 10:
            world.view.wake()
            await asyncio.sleep(0.001)
        for it in waiting:
            it.cancel()

    assert 0 < spent <= (clock.now - began) / 9


async def test_the_end_of_all_pools_ends_the_wait(clock):
    async with World(CanScaleUp(0, 1, 5), provider="") as world:
        began = clock.now

        assert whys(await world.refusal()) == []
        assert LASTING_SECONDS <= clock.now - began <= LASTING_SECONDS + 2


async def test_a_node_that_stays_on_its_way_forever_ends_in_vain():
    async with World(CanScaleUp(0, 1, minutes=1)) as world:
        group = "- name: g\n  health: {cloudProviderTarget: 1, maxSize: 1}\n"
        status = status_map(f"autoscalerStatus: Running\nnodeGroups:\n{group}")
        world.view.autoscalers.put(status)

        assert WhyNoNode.IN_VAIN in whys(await world.refusal())


async def test_a_wait_that_the_hub_is_about_to_end_says_nothing_about_others():
    async with World(CanScaleUp(0, 1, 5)) as world:
        refusal = await world.in_vain(most=60)

        assert (refusal.reason, whys(refusal)) == (Reason.BUSY, [WhyNoNode.IN_VAIN])
        assert isinstance(world.decide(proposal("b")), Wait)


async def test_a_pod_that_gets_its_node_waits_no_longer_and_its_time_is_measured():
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await asyncio.sleep(120)
        made = {"metadata": {"name": "new", "creationTimestamp": datetime.now(UTC).isoformat()}}
        world.view.put("Node", node("new", 1) | made)
        world.view.put("Pod", pod("a", on="new"))

        assert await world.still_waits()
        usual = world.preflight.to_come.pools.usual
        assert usual.minutes("gpus") == usual.minutes("") == 2


async def test_an_older_node_says_nothing_about_the_time_of_a_new_one():
    async with World() as world:
        world.view.remove_pod("x")
        world.view.put("Pod", pod("a", on="n"))
        await settle()

        assert world.preflight.to_come.pools.usual.minutes("") is None


async def test_an_older_pod_that_is_ending_is_not_taken_for_the_one_that_waits():
    world = World()
    older = pod("a", on="n")
    older["metadata"] |= {"uid": "older", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    world.view.put("Pod", older)
    task = asyncio.create_task(world.in_vain())
    await settle()
    world.view.remove_pod("a")
    world.view.put("Pod", pod("a"))

    assert whys(await task) == [WhyNoNode.NO_ANSWER]


# After a no, while a node joins


def joining(gpus=0, minutes=1.0):
    """A node that has joined, and may not show its GPUs yet."""
    began = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    made = node("young", gpus)
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": began}}


async def told_no_while_a_node_joins(world):
    """Cluster Autoscaler's group is at its maximum by then, and it takes the node for finished."""
    await world.hears("TriggeredScaleUp", SCALE_UP)
    assert await world.still_waits(2 * TRIAL_SECONDS)
    world.view.put("Node", joining())
    await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
    assert await world.still_waits(3 * TRIAL_SECONDS)


async def test_a_no_while_a_node_joins_does_not_end_the_wait_for_it():
    async with World() as world:
        await told_no_while_a_node_joins(world)
        world.view.put("Node", joining(gpus=1))
        world.view.put("Pod", pod("a", on="young"))

        assert await world.still_waits(2 * LASTING_SECONDS)


@pytest.mark.parametrize("others", [[], [pod("b", on="young")]], ids=["old", "taken"])
async def test_but_it_ends_in_seconds_once_that_node_will_not_hold_the_pod(others, clock):
    async with World() as world:
        await told_no_while_a_node_joins(world)
        world.view.put("Node", joining(gpus=len(others), minutes=1 if others else 15.1))
        for other in others:
            world.view.put("Pod", other)
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]
        assert clock.now - began <= LASTING_SECONDS + 2


async def test_nobody_waits_longer_than_for_any_node_though_new_ones_join_again_and_again(clock):
    async with World() as world:
        began = clock.now
        await told_no_while_a_node_joins(world)
        await world.refusal()

        assert clock.now - began <= longest_wait(world.wait.scale_up) + 2


# While a home is being made

NO_VOLUME_YET = "pod didn't trigger scale-up: 1 pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME_TO_BIND = (
    "pod didn't trigger scale-up: 1 node(s) didn't find available persistent volumes to bind"
)


class NewHome(World):
    """A pod that waits for a node, and at first for the volume of its claim, too."""

    def __init__(self, class_=NOW):
        super().__init__(volumes=[HOME])
        self.class_ = class_["metadata"]["name"]
        for kind in STORAGE_KINDS:
            self.view.state.mark_known(kind)
        self.view.put("StorageClass", class_)
        self.view.put("PersistentVolumeClaim", self.claim())

    def claim(self, user="a", volume=None):
        made = {"namespace": NAMESPACE, "creationTimestamp": datetime.now(UTC).isoformat()}
        return claim(f"claim-{user}", volume, self.class_, **made)

    async def gets_its_volume(self):
        self.view.put("PersistentVolume", volume("disk", class_=self.class_))
        if self.class_ == "now":
            self.view.put("PersistentVolumeClaim", self.claim(volume="disk"))
        await settle()

    def newcomer(self):
        """Another user, who has no home yet."""
        home = {"name": "home", "persistentVolumeClaim": {"claimName": "claim-b"}}
        return replace(proposal("b", volumes=[home]), new_claims=(self.claim("b"),))


async def test_a_no_while_a_home_is_being_made_says_nothing_about_nodes():
    async with NewHome() as world:
        await world.hears("NotTriggerScaleUp", "pod didn't trigger scale-up: something new")
        assert await world.still_waits()
        assert isinstance(world.decide(world.newcomer()), Wait)
        await world.gets_its_volume()
        assert await world.still_waits(TRIAL_SECONDS / 2)
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_nor_does_it_if_it_is_read_once_the_home_is_there():
    async with NewHome() as world:
        await world.gets_its_volume()
        await world.hears("NotTriggerScaleUp", NO_VOLUME_YET)

        assert await world.still_waits(TRIAL_SECONDS / 2)
        assert isinstance(world.decide(world.asked), Wait)


async def test_a_no_about_a_volume_that_is_made_by_hand_does_not_outlast_its_making():
    async with NewHome(LOCAL) as world:
        await world.hears("NotTriggerScaleUp", NO_VOLUME_TO_BIND)
        assert await world.still_waits(2 * TRIAL_SECONDS)
        await world.gets_its_volume()

        assert await world.still_waits(TRIAL_SECONDS / 2)
        assert isinstance(world.decide(world.asked), Wait)


class UnreadHome(World):
    """A first start on a hub that may not read claims."""

    def __init__(self):
        super().__init__(volumes=[HOME])
        for kind in STORAGE_KINDS:
            self.view.state.mark_known(kind)
        self.view.state.mark_unknown("PersistentVolumeClaim")
        self.view.put("StorageClass", NOW)
        its = claim("claim-a", class_="now", namespace=NAMESPACE)
        self.asked = replace(self.asked, new_claims=(its,))

    def says(self, message):
        """Let kube-scheduler say why the pod gets no node."""
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        self.view.put(
            "Pod", {**self.asked.pod, "status": {"conditions": [{**told, "message": message}]}}
        )


async def test_where_claims_are_not_read_kube_scheduler_says_that_a_home_is_being_made(clock):
    async with UnreadHome() as world:
        world.says("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
        assert await world.still_waits(2 * TRIAL_SECONDS)
        world.says("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS + 2


async def test_where_claims_are_not_read_a_no_about_nodes_counts():
    async with UnreadHome() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_a_trial_begins_once_the_home_is_there(clock):
    async with NewHome() as world:
        before = world.preflight.to_come.version
        assert await world.still_waits(5 * TRIAL_SECONDS)
        assert world.preflight.to_come.version == before, "forms would be drawn anew"
        await world.gets_its_volume()
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert TRIAL_SECONDS - 1 <= clock.now - began <= TRIAL_SECONDS + 1
        assert isinstance(world.decide(world.newcomer()), Wait)


async def test_only_looks_at_a_pod_whose_home_is_there_end_its_trial():
    async with on_gke(NewHome()) as world:
        for number in (30, 60):
            written(world, number)
            assert await world.still_waits(TRIAL_SECONDS)
        await world.gets_its_volume()
        written(world, 90)
        assert await world.still_waits(2 * TRIAL_SECONDS)
        written(world, 120)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]


async def test_a_node_that_is_coming_is_waited_for_as_long_though_a_home_is_being_made():
    async with NewHome() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(TRIAL_SECONDS)
        await world.gets_its_volume()

        assert await world.still_waits(5 * TRIAL_SECONDS)


async def test_a_home_that_is_never_made_ends_a_wait_before_the_hub_s_own_timeout(clock):
    began = clock.now
    async with NewHome() as world:
        refusal = await world.in_vain(most=300)

        assert refusal.reason is Reason.BUSY
        assert clock.now - began <= 301


# Behind a queue of Kueue

GATED = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


class Queued(World):
    """A pod that Kueue holds back."""

    async def __aenter__(self):
        self.view.put("Pod", pod("a", **GATED))
        self.task = asyncio.create_task(self.in_vain_after_queue())
        await settle()
        return self

    async def in_vain_after_queue(self):
        with self.view.events.of(*self.asked.key) as heard:

            def awaited(asked, wait):
                return self.awaited(heard, asked, wait).look

            node = NodeAfterQueue(self.view, self.preflight.decider.check_sent, self.asked, awaited)
            return await answered(self.view, node.look)

    async def is_admitted(self, on="", **spec):
        self.view.put("Pod", pod("a", on=on, **spec))
        await settle()


async def test_once_kueue_has_admitted_a_pod_the_autoscaler_s_no_ends_its_wait():
    async with Queued() as world:
        assert await world.still_waits(5 * TRIAL_SECONDS)
        await world.is_admitted()
        assert await world.still_waits(TRIAL_SECONDS / 2)
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_an_admitted_pod_that_waits_for_its_home_needs_a_node_only_afterwards():
    async with Queued() as world:
        for kind in STORAGE_KINDS:
            world.view.state.mark_known(kind)
        for kind, plain in (*ALONE, ("Pod", pod("other", 0, on="n", volumes=[HOME]))):
            world.view.put(kind, plain)
        await world.is_admitted(volumes=[HOME])
        assert await world.still_waits(5 * TRIAL_SECONDS)
        world.view.remove_pod("other")
        assert await world.still_waits()
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_an_admitted_pod_needs_a_node_also_if_its_room_is_taken_only_afterwards():
    async with Queued() as world:
        world.view.remove_pod("x")
        await world.is_admitted()
        assert await world.still_waits(2)
        world.view.put("Pod", pod("x", 1, on="n"))
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_an_admitted_pod_is_judged_once_a_second_however_often_the_cluster_changes(clock):
    check = Mock(return_value=Refuse(Grant(), Reason.BUSY))
    node = NodeAfterQueue(StillView(("Pod", pod("a"))), check, proposal("a"), Mock())
    for expected in (1, 2):
        assert [node.look() for _ in range(100)] == [None] * 100
        assert check.call_count == expected
        clock.now += 1


async def test_the_trial_of_a_pod_begins_once_kueue_has_admitted_it(clock):
    async with Queued() as world:
        await asyncio.sleep(5 * TRIAL_SECONDS)
        began = clock.now
        await world.is_admitted()

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert TRIAL_SECONDS <= clock.now - began <= TRIAL_SECONDS + 1


async def test_the_hub_s_own_timeout_also_ends_the_wait_of_a_pod_that_was_queued_for_long(clock):
    class Started(Queued):
        async def in_vain_after_queue(self):
            queued = Start(Grant(), (InQueue(PlaceInQueue("gpus"), Start(Grant())),))
            attempt = Attempt(Choice(self.asked), queued, ends=clock.now + 3600)
            spawner = SimpleNamespace(preflight="enforce", trial_timeout=7200)
            with self.view.events.of(*self.asked.key) as heard:
                return await answered(self.view, question(spawner, self, attempt, heard))

    async with Started() as world:
        began = clock.now
        await asyncio.sleep(3000)
        await world.is_admitted()

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert 3000 < clock.now - began < 3600


async def test_what_is_told_of_one_flavor_s_nodes_is_no_reason_to_refuse_other_pods():
    async with Queued() as world:
        await world.is_admitted(nodeSelector={"gpu": "a100", "team": "a"})
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        await world.refusal()

        assert isinstance(world.decide(proposal("b")), Wait)


async def test_a_pod_that_kueue_sends_to_a_node_with_room_waits_for_no_other():
    async with Queued() as world:
        world.view.remove_pod("x")
        await world.is_admitted()
        assert await world.still_waits(5 * TRIAL_SECONDS)

    async with Queued() as world:
        await world.is_admitted(on="n")
        assert await world.still_waits(5 * TRIAL_SECONDS)


async def test_many_pods_hear_a_no_within_seconds_although_each_look_is_long(clock):
    world = World()
    check, names = world.preflight.decider.check_sent, [f"p{number}" for number in range(30)]

    def slow(asked):
        clock.now += 0.006
        return check(asked)

    world.preflight.decider.check_sent = slow
    waits = []
    for name in names:
        world.view.put("Pod", pod(name))
        waits.append(asyncio.create_task(world.in_vain(name)))
        await asyncio.sleep(0.03)
    await asyncio.sleep(3)
    began = clock.now
    for name in names:
        world.tell(name, "NotTriggerScaleUp", AT_MAXIMUM)

    refusals = await asyncio.gather(*waits)

    assert {it.reason for it in refusals} == {Reason.BUSY}
    assert clock.now - began < 5
