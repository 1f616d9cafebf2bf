"""A pod gets no node if its autoscaler says no, its time is up, or another pod takes its room."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gpuspawner.cluster.autoscaler_objects import STATUS
from gpuspawner.kube.autoscaling import ConfigMap, Event, NodeClaim
from gpuspawner.launch.unscheduled import (
    LASTING_SECONDS,
    NodeAfterQueue,
    PromisedRoom,
    WhyUnscheduled,
)
from gpuspawner.preflight.decision import Decision, HeldBy, Reason, Refuse, Wait
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.scaling.usual_times import TRIAL_SECONDS, longest_wait
from tests.unit.makers.outlooks import status_map
from tests.unit.makers.storage import HOME, STORAGE_KINDS
from tests.unit.makers.waits import AT_MAXIMUM, SCALE_UP, World, answered, whys
from tests.unit.makers.worlds import (
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


async def test_the_autoscalers_no_ends_the_wait_at_once_and_is_remembered_for_the_next(
    clock,
) -> None:
    async with World() as world:
        began = clock.now
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]
        assert clock.now == began
        decision = world.preflight.decider.check(proposal("b"))
        assert isinstance(decision, Refuse)
        assert whys(decision) == [WhyNoNode.AT_MAXIMUM]
        assert isinstance(
            world.preflight.decider.check(proposal("c", 0, nodeSelector={"x": "y"})), Wait
        )


async def test_without_an_answer_the_trial_ends(clock) -> None:
    async with World() as world:
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert TRIAL_SECONDS <= clock.now - began <= TRIAL_SECONDS + 1


# Whether the autoscaler has looked


def written(
    world: World, number: int, target: int = 1, health: str = "Healthy", group: str = "Healthy"
) -> None:
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


def on_gke() -> World:
    """A world whose status lists a group at its maximum, where the autoscaler may make others."""
    world = World()
    world.view.put("Node", labelled(node("m", 0), {"cloud.google.com/gke-nodepool": "core"}))
    written(world, 0)
    return world


async def test_a_listed_pool_below_its_maximum_is_waited_for_as_long_as_for_a_node(clock) -> None:
    world, began = World(MayScaleUp(Source.CLUSTER_AUTOSCALER), provider=""), clock.now
    written(world, 0, target=0)
    async with world:
        assert await world.still_waits(10 * TRIAL_SECONDS)
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(5 * TRIAL_SECONDS)

        assert whys(await world.refusal()) == [WhyNoNode.IN_VAIN]
        assert clock.now - began >= longest_wait(world.wait.scale_up)


@pytest.mark.parametrize("source", [Source.CLUSTER_AUTOSCALER, Source.KARPENTER])
async def test_an_autoscaler_that_is_silent_about_a_pool_that_may_be_ill_is_only_tried(
    clock, source
) -> None:
    world = World(MayScaleUp(source), provider="")
    if source is Source.KARPENTER:
        world.grows()
    else:
        written(world, 0, target=0, group="Unhealthy")
    async with world:
        began = clock.now
        for number in (30, 60):
            assert await world.still_waits(TRIAL_SECONDS / 3)
            if source is Source.CLUSTER_AUTOSCALER:
                written(world, number, target=0, group="Unhealthy")

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS + 1


async def test_an_autoscaler_that_comes_back_in_a_trial_has_to_look_twice() -> None:
    world = on_gke()
    written(world, -3600)  # it has been away for an hour
    async with world:
        assert await world.still_waits(TRIAL_SECONDS - 10)
        written(world, 50)  # it may have begun before the pod was there
        assert await world.still_waits(2 * TRIAL_SECONDS)
        written(world, 180)
        assert await world.still_waits(10)
        written(world, 190)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.preflight.decider.check(proposal("b")), Refuse)


async def test_a_status_that_is_read_again_shows_no_further_look() -> None:
    async with on_gke() as world:
        text = world.view.autoscalers.autoscaler_status
        for _ in range(3):  # as after lost watches
            world.view.autoscalers.remove("ConfigMap", *STATUS)
            assert await world.still_waits(2)
            world.view.autoscalers.put(status_map(text))
            assert await world.still_waits(TRIAL_SECONDS / 2)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.preflight.decider.check(proposal("b")), Wait)


async def test_a_trial_goes_on_until_the_autoscaler_has_looked_while_the_pod_was_there() -> None:
    async with on_gke() as world:
        assert await world.still_waits(95)
        written(world, 95)  # it may have begun before the pod came
        assert await world.still_waits(95)
        written(world, 190)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.preflight.decider.check(proposal("b")), Refuse)


async def test_nothing_is_remembered_of_a_trial_in_which_the_autoscaler_did_not_look() -> None:
    async with on_gke() as world:
        assert await world.still_waits(10 * TRIAL_SECONDS)

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert isinstance(world.preflight.decider.check(proposal("b")), Wait)


async def test_an_autoscaler_of_an_ill_cluster_does_not_look() -> None:
    async with on_gke() as world:
        for number in range(1, 5):
            written(world, number, health="Unhealthy")
            assert await world.still_waits(TRIAL_SECONDS)


async def test_an_autoscaler_that_has_gone_is_not_waited_for_nor_taken_for_one_that_looked(
    clock,
) -> None:
    async with on_gke() as world:
        assert await world.still_waits(TRIAL_SECONDS / 2)
        world.view.autoscalers.remove("ConfigMap", *STATUS)
        began = clock.now

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert clock.now - began <= TRIAL_SECONDS
        assert isinstance(world.preflight.decider.check(proposal("b")), Wait)


async def test_the_administrator_says_how_long_a_trial_takes(clock) -> None:
    world, began = World(), clock.now
    world.view.put("Pod", pod("a"))

    assert whys(await world.in_vain(trial=300)) == [WhyNoNode.NO_ANSWER]
    assert 300 <= clock.now - began <= 301


async def test_without_the_right_to_read_events_silence_ends_nothing() -> None:
    async with World() as world:
        world.view.events.end(NAMESPACE)

        assert await world.still_waits(2 * TRIAL_SECONDS)


async def test_a_toleration_that_admission_adds_counts_while_the_pod_waits() -> None:
    async with World(provider="") as world:
        world.grows(taints=[{"key": GPU, "effect": "NoSchedule"}])
        world.view.put("Pod", pod("a", tolerations=[{"key": GPU, "operator": "Exists"}]))

        assert await world.still_waits(2 * LASTING_SECONDS)


async def test_an_older_pods_events_say_nothing() -> None:
    async with World() as world:
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM, uid="older")

        assert await world.still_waits()


async def test_a_scale_up_ends_the_trial() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)

        assert await world.still_waits(2 * TRIAL_SECONDS)


async def test_a_later_no_ends_a_wait_for_a_node_that_was_coming() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await world.hears("NotTriggerScaleUp", "1 in backoff after failed scale-up")

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
async def test_gkes_failed_scale_up_says_why_no_node_comes_once_no_other_zone_helps(
    failure, why
) -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await world.hears("FailedScaleUp", f"Node scale up in zones a {AT_RISK.format(failure)}")
        assert await world.still_waits(LASTING_SECONDS)
        await world.hears("NotTriggerScaleUp", "1 in backoff after failed scale-up")

        assert whys(await world.refusal()) == [why]


async def test_a_failed_scale_up_says_nothing_of_a_later_one_in_another_zone() -> None:
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
async def test_a_nodeclaim_that_cannot_be_launched_says_why_before_it_is_gone(
    status, reason, why
) -> None:
    launched = {"type": "Launched", "status": status, "reason": reason, "message": "no"}
    claim = {"metadata": {"name": "a-x"}, "status": {"conditions": [launched]}}
    async with World(provider="") as world:
        world.view.autoscalers.put(msgspec.convert(claim, NodeClaim))
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x")
        world.view.autoscalers.remove("NodeClaim", "", "a-x")
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [why]


async def test_one_autoscalers_no_does_not_end_a_wait_for_anothers_node() -> None:
    async with World() as world:
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/x")
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert await world.still_waits()


@pytest.mark.parametrize(
    ("claims", "seconds", "why"),
    [([], 290, WhyNoNode.STOCK_OUT), ([], 310, WhyNoNode.IN_VAIN), (["a-x"], 290, WhyNoNode.LIMIT)],
    ids=["the cloud had none", "the machine never joined", "another pod took it"],
)
async def test_karpenters_no_after_a_nodeclaim_says_what_became_of_the_claim(
    claims, seconds, why
) -> None:
    """The no itself is only about the other pools."""
    async with World(provider="") as world:
        for name in claims:
            plain = {"metadata": {"name": name}}
            world.view.autoscalers.put(msgspec.convert(plain, NodeClaim))
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x, node/n")
        assert await world.still_waits(seconds)
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [why]


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def rival(reason: str = "Unschedulable") -> dict[str, object]:
    """Another pod that waits."""
    return {**pod("b"), "status": {"conditions": [{**UNSCHEDULABLE, "reason": reason}]}}


@pytest.mark.parametrize("wait", [MayScaleUp(Source.KARPENTER), CanScaleUp(0, None, 5)])
async def test_karpenters_no_counts_only_after_its_next_rounds_if_other_pods_wait_too(
    clock, wait
) -> None:
    async with World(wait, provider="") as world:
        world.grows()
        world.view.put("Pod", rival())
        began = clock.now
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert TRIAL_SECONDS <= clock.now - began <= TRIAL_SECONDS + 2
        assert whys(world.preflight.decider.check(proposal("c"))) == [WhyNoNode.LIMIT]


async def test_another_autoscalers_yes_leaves_karpenters_no_for_when_that_one_fails(clock) -> None:
    async with World(MayScaleUp(Source.KARPENTER), provider="") as world:
        world.grows()
        world.view.put("Pod", rival())
        await world.hears("FailedScheduling", OVER_LIMIT)
        await world.hears("TriggeredScaleUp", SCALE_UP)
        assert await world.still_waits(5 * TRIAL_SECONDS)
        began = clock.now
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert WhyNoNode.LIMIT in whys(await world.refusal())
        assert clock.now - began <= 2


async def test_karpenters_next_round_brings_a_node_after_a_no() -> None:
    async with World(MayScaleUp(Source.KARPENTER), provider="") as world:
        world.grows()
        world.view.put("Pod", rival())
        await world.hears("FailedScheduling", OVER_LIMIT)
        assert await world.still_waits(TRIAL_SECONDS / 2)
        await world.hears("Nominated", "Pod should schedule on: nodeclaim/a-x")

        assert await world.still_waits(5 * TRIAL_SECONDS)


async def test_karpenters_no_counts_in_the_end_if_it_says_so_again_and_again(clock) -> None:
    """It does each five minutes; a trial may be longer."""
    async with World(MayScaleUp(Source.KARPENTER), provider="") as world:
        world.grows()
        world.view.put("Pod", rival())
        began = clock.now
        for _ in range(4):
            await world.hears("FailedScheduling", OVER_LIMIT)
            await asyncio.sleep(TRIAL_SECONDS / 2)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert clock.now - began <= 2 * TRIAL_SECONDS


async def test_a_start_that_ends_before_karpenters_next_rounds_says_what_karpenter_said() -> None:
    async with World(MayScaleUp(Source.KARPENTER), provider="") as world:
        world.grows()
        world.view.put("Pod", rival())
        task = asyncio.create_task(world.in_vain(most=TRIAL_SECONDS / 2))
        await settle()
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await task) == [WhyNoNode.LIMIT]


@pytest.mark.parametrize("others", [[], [rival("SchedulingGated")]])
async def test_without_other_pods_karpenters_no_counts_at_once(clock, others) -> None:
    async with World(MayScaleUp(Source.KARPENTER), provider="") as world:
        world.grows()
        for other in others:
            world.view.put("Pod", other)
        began = clock.now
        await world.hears("FailedScheduling", OVER_LIMIT)

        assert whys(await world.refusal()) == [WhyNoNode.LIMIT]
        assert clock.now == began


async def test_one_autoscalers_no_leaves_the_others_pools() -> None:
    async with World() as world:
        world.grows()
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert await world.still_waits()
        assert isinstance(world.preflight.decider.check(world.asked), Wait)


async def test_after_anothers_no_a_moment_without_hope_ends_nothing() -> None:
    async with World(provider="") as world:
        world.grows("True")
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        for ready in ("False", "True"):
            world.grows(ready)
            world.view.wake()
            await settle()

        assert await world.still_waits()


async def test_anothers_no_does_not_end_a_wait_whose_node_is_coming() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        subject, obstacle = proposal("b").subject, Obstacle(WhyNoNode.AT_MAXIMUM)
        world.preflight.to_come.remember(subject, Source.CLUSTER_AUTOSCALER, obstacle)

        assert await world.still_waits(2 * LASTING_SECONDS)


async def test_many_changes_in_one_moment_are_no_reason_to_give_up() -> None:
    async with World(CanScaleUp(0, 1, 5), provider="") as world:
        for _ in range(30):
            world.view.wake()
            await settle()

        assert await world.still_waits()


async def test_long_looks_leave_the_hub_most_of_its_time(clock) -> None:
    world, began = World(), clock.now
    spent = 0.0

    def slowly(_):
        nonlocal spent
        clock.now += 0.02
        spent += 0.02
        return world.wait

    world.check = slowly
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


async def test_the_end_of_all_pools_ends_the_wait(clock) -> None:
    async with World(CanScaleUp(0, 1, 5), provider="") as world:
        began = clock.now

        assert whys(await world.refusal()) == []
        assert LASTING_SECONDS <= clock.now - began <= LASTING_SECONDS + 2


async def test_a_node_that_stays_on_its_way_forever_ends_in_vain() -> None:
    async with World(CanScaleUp(0, 1, minutes=1)) as world:
        status = (
            "autoscalerStatus: Running\nnodeGroups:\n- name: g\n"
            "  health: {cloudProviderTarget: 1, maxSize: 1}\n"
        )
        meta = {"namespace": STATUS[0], "name": STATUS[1]}
        plain = {"metadata": meta, "data": {"status": status}}
        world.view.autoscalers.put(msgspec.convert(plain, ConfigMap))

        assert WhyNoNode.IN_VAIN in whys(await world.refusal())


async def test_a_wait_that_the_hub_is_about_to_end_says_nothing_about_others() -> None:
    async with World(CanScaleUp(0, 1, 5)) as world:
        refusal = await world.in_vain(most=60)

        assert (refusal.reason, whys(refusal)) == (Reason.BUSY, [WhyNoNode.IN_VAIN])
        assert isinstance(world.preflight.decider.check(proposal("b")), Wait)


async def test_a_pod_that_gets_its_node_waits_no_longer_and_its_time_is_measured() -> None:
    async with World() as world:
        await world.hears("TriggeredScaleUp", SCALE_UP)
        await asyncio.sleep(120)
        young = node("new", 1)
        young["metadata"] = {"name": "new", "creationTimestamp": datetime.now(UTC).isoformat()}
        world.view.put("Node", young)
        world.view.put("Pod", pod("a", on="new"))

        assert await world.still_waits()
        usual = world.preflight.to_come.pools.usual
        assert usual.minutes("gpus") == usual.minutes("") == 2


async def test_an_older_node_says_nothing_about_the_time_of_a_new_one() -> None:
    async with World() as world:
        world.view.remove_pod("x")
        world.view.put("Pod", pod("a", on="n"))
        await settle()

        assert world.preflight.to_come.pools.usual.minutes("") is None


async def test_an_older_pod_that_is_ending_is_not_taken_for_the_one_that_waits() -> None:
    world = World()
    older = pod("a", on="n")
    older["metadata"] |= {"uid": "older", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    world.view.put("Pod", older)
    task = asyncio.create_task(world.in_vain())
    await settle()
    world.view.remove_pod("a")
    world.view.put("Pod", pod("a"))

    assert whys(await task) == [WhyNoNode.NO_ANSWER]


CLAIM = {
    "metadata": {
        "name": "claim-a",
        "namespace": NAMESPACE,
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
    },
    "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOncePod"]},
}
ALONE = ("PersistentVolumeClaim", CLAIM), ("PersistentVolume", {"metadata": {"name": "disk"}})
"""A home that one pod can use at a time."""


# Behind a queue of Kueue

GATED = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


class Queued(World):
    """A pod that Kueue holds back."""

    async def __aenter__(self) -> Queued:
        self.view.put("Pod", pod("a", **GATED))
        self.task = asyncio.create_task(self.in_vain_after_queue())
        await settle()
        return self

    async def in_vain_after_queue(self) -> Refuse:
        with self.view.events.of(*self.asked.key) as heard:

            def awaited(asked: Proposal, wait: Wait) -> WhyUnscheduled:
                return self.awaited(heard, asked, wait).look

            node = NodeAfterQueue(self.view, self.check, self.asked, awaited)
            return await answered(self.view, node.look)

    async def is_admitted(self, on: str = "", **spec: object) -> None:
        self.view.put("Pod", pod("a", on=on, **spec))
        await settle()


async def test_once_kueue_has_admitted_a_pod_the_autoscaler_s_no_ends_its_wait() -> None:
    async with Queued() as world:
        assert await world.still_waits(5 * TRIAL_SECONDS)
        await world.is_admitted()
        assert await world.still_waits(TRIAL_SECONDS / 2)
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)

        assert whys(await world.refusal()) == [WhyNoNode.AT_MAXIMUM]


async def test_once_an_admitted_pod_has_its_home_the_autoscaler_s_no_ends_its_wait_for_a_node() -> (
    None
):
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


async def test_the_trial_of_a_pod_begins_once_kueue_has_admitted_it(clock) -> None:
    async with Queued() as world:
        await asyncio.sleep(5 * TRIAL_SECONDS)
        began = clock.now
        await world.is_admitted()

        assert whys(await world.refusal()) == [WhyNoNode.NO_ANSWER]
        assert TRIAL_SECONDS <= clock.now - began <= TRIAL_SECONDS + 1


async def test_what_is_told_of_one_flavor_s_nodes_is_no_reason_to_refuse_other_pods() -> None:
    async with Queued() as world:
        await world.is_admitted(nodeSelector={"gpu": "a100", "team": "a"})
        await world.hears("NotTriggerScaleUp", AT_MAXIMUM)
        await world.refusal()

        assert isinstance(world.preflight.decider.check(proposal("b")), Wait)


async def test_a_pod_that_kueue_sends_to_a_node_with_room_waits_for_no_other() -> None:
    async with Queued() as world:
        world.view.remove_pod("x")
        await world.is_admitted()
        assert await world.still_waits(5 * TRIAL_SECONDS)

    async with Queued() as world:
        await world.is_admitted(on="n")
        assert await world.still_waits(5 * TRIAL_SECONDS)


# Room that was promised


def pending(name, **status):
    return {**pod(name), "status": {"phase": "Pending", **status}}


UNBOUND = pending("a", conditions=[UNSCHEDULABLE])


async def test_a_pod_whose_room_went_to_another_pod_is_refused_as_taken() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view)
    await preflight.taking.take(proposal("a"))
    view.put("Pod", pod("other", on="n"))
    view.put("Pod", UNBOUND)

    room = PromisedRoom(view, preflight.decider.check_sent, proposal("a"))
    refusal = await asyncio.wait_for(answered(view, room.look), 5)

    assert refusal.reason is Reason.TAKEN
    assert refusal.gpus is not None
    assert refusal.gpus.free == 0


@pytest.mark.parametrize(
    ("seen", "other"),
    [
        (pending("a"), "n"),
        (UNBOUND, ""),
        (pending("a", conditions=[UNSCHEDULABLE], nominatedNodeName="n"), "n"),
        (pod("a", on="n"), ""),
        (pending("another", conditions=[UNSCHEDULABLE]), "n"),
    ],
    ids=["not tried yet", "room again", "room being cleared", "bound", "not in view"],
)
async def test_a_pod_that_may_still_be_bound_is_left_alone(seen, other) -> None:
    objects = [("Pod", pod("other", on=other))] if other else []
    view = StillView(("Node", node("n", 1)), *objects, ("Pod", seen))

    room = PromisedRoom(view, Preflight(view).decider.check_sent, proposal("a"))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answered(view, room.look), 60)


class Clearing(StillView):
    """A view in which the other pod is gone at each third look."""

    looks = 0

    def in_touch(self) -> bool:
        self.looks += 1
        if self.looks % 3:
            self.put("Pod", pod("other", on="n"))
        else:
            self.remove_pod("other")
        return super().in_touch()


async def test_a_pod_that_lost_its_room_only_for_a_moment_is_left_alone() -> None:
    """The scheduler tried it before it knew of a pod that had just ended, and tries again."""
    view = Clearing(("Node", node("n", 1)), ("Pod", UNBOUND))

    room = PromisedRoom(view, Preflight(view).decider.check_sent, proposal("a"))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answered(view, room.look), 60)
    assert view.looks > 3


async def test_a_pod_whose_node_has_gone_is_refused_if_others_would_refuse_it_for_its_shares() -> (
    None
):
    shared = node("s", 4)
    shared["metadata"]["labels"] |= {
        f"{GPU}.sharing-strategy": "mps",
        f"{GPU}.replicas": "4",
    }
    others = (("Pod", pod(f"x{number}", 1, on="s")) for number in range(3))
    unbound = {**UNBOUND, "spec": pod("a", 2)["spec"]}
    view = StillView(("Node", shared), *others, ("Pod", unbound))

    room = PromisedRoom(view, Preflight(view).decider.check_sent, proposal("a", 2))

    refusal = await asyncio.wait_for(answered(view, room.look), 60)
    assert (refusal.reason, refusal.one_share) == (Reason.IMPOSSIBLE, True)


async def test_a_pod_whose_home_another_one_has_got_alone_is_refused_for_that() -> None:
    other = "Pod", pod("other", 0, on="n", volumes=[HOME])
    unbound = {**UNBOUND, "spec": pod("a", 1, volumes=[HOME])["spec"]}
    view = StillView(("Node", node("n", 1)), *ALONE, other, ("Pod", unbound))
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)

    what = proposal("a", volumes=[HOME])
    room = PromisedRoom(view, Preflight(view).decider.check_sent, what)

    refusal = await asyncio.wait_for(answered(view, room.look), 60)
    assert (refusal.reason, refusal.held) == (Reason.BUSY, HeldBy.OTHER)


def no_for(name: str) -> Event:
    """Return an event in which Cluster Autoscaler says no to a pod."""
    plain = {
        "metadata": {"namespace": NAMESPACE, "name": f"{name}.1", "resourceVersion": "1"},
        "involvedObject": {"name": name, "uid": name},
        "reason": "NotTriggerScaleUp",
        "message": AT_MAXIMUM,
    }
    return msgspec.convert(plain, Event)


async def test_many_pods_hear_a_no_within_seconds_although_each_look_is_long(clock) -> None:
    world = World()
    check, names = world.check, [f"p{number}" for number in range(30)]

    def slow(asked: Proposal) -> Decision:
        clock.now += 0.006
        return check(asked)

    world.check = slow
    waits = []
    for name in names:
        world.view.put("Pod", pod(name))
        waits.append(asyncio.create_task(world.in_vain(name)))
        await asyncio.sleep(0.03)
    await asyncio.sleep(3)
    began = clock.now
    for name in names:
        world.view.events.hear(no_for(name))

    refusals = await asyncio.gather(*waits)

    assert {it.reason for it in refusals} == {Reason.BUSY}
    assert clock.now - began < 5
