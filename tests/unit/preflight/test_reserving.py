"""Starts and their reservations, on states that a test sets."""

import asyncio
import math
from dataclasses import replace

import pytest

from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.preflight.decision import Reason, ResourceRoom, Start, ViewNotLive, Wait
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.reservations.pending_pods import PATIENCE_SECONDS
from gpuspawner.scaling.outlook import CanScaleUp
from tests.unit.makers.storage import HOME, STORAGE_KINDS, WAIT, claim
from tests.unit.makers.worlds import (
    GPU,
    NAMESPACE,
    ONE_FREE,
    StillView,
    is_unknown,
    labelled,
    node,
    of_pool,
    pod,
    preflight_on,
    proposal,
    refused,
    settle,
    waiting,
)

pytestmark = pytest.mark.usefixtures("clock")


@pytest.mark.parametrize(
    "health",
    [Reading(2), Stale(30, "HTTP 500"), Forbidden(("pods",), "no"), Unreachable("no file")],
)
async def test_without_a_live_view_nothing_is_refused_and_no_reservation_is_taken(health):
    view = StillView()
    view.now = health
    preflight = Preflight(view)
    what = proposal("a", 8)

    assert preflight.decider.check(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.reserving.take(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.reserving.move(what) == Start(what.grant, (ViewNotLive(health),))
    assert len(preflight.reservations) == 0


LOST = {"out of touch": {"touch": False}, "stale": {"now": Stale(3, "HTTP 500")}}
BACK = {"touch": True, "now": Live(0.5)}
"""What a view says of contact that is lost for a moment, and of contact that is back."""


def says(view, contact):
    for name, value in contact.items():
        setattr(view, name, value)
    view.wake()


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_nobody_is_refused_while_contact_is_lost_for_a_moment(lost):
    """What the view missed may have made room, as here."""
    view = StillView(*ONE_FREE)
    preflight = Preflight(view)
    says(view, lost)
    asking = await waiting(preflight.reserving.take(proposal("a", 2)))

    view.remove_pod("x")
    says(view, BACK)

    assert await asking == Start(proposal("a", 2).grant)
    assert len(preflight.reservations) == 1


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_who_still_does_not_fit_is_refused_once_contact_is_back(lost):
    view = StillView(*ONE_FREE)
    says(view, lost)
    asking = await waiting(Preflight(view).reserving.take(proposal("a", 2)))

    says(view, BACK)

    assert refused(await asking) is Reason.BUSY


async def test_who_fits_starts_at_once_although_contact_is_lost_for_a_moment(clock):
    view, began = StillView(*ONE_FREE), clock.now
    view.touch = False

    assert await Preflight(view).reserving.take(proposal("a")) == Start(proposal("a").grant)
    assert clock.now == began


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_a_pod_that_is_sent_keeps_its_reservation_while_contact_is_lost_for_a_moment(lost):
    view = StillView(*ONE_FREE)
    preflight = Preflight(view)
    await preflight.reserving.take(proposal("a"))
    view.put("Pod", pod("y", on="n"))
    says(view, lost)
    asking = await waiting(preflight.reserving.move(proposal("a")))
    assert len(preflight.reservations) == 1

    view.remove_pod("y")
    says(view, BACK)

    assert await asking == Start(proposal("a").grant)


async def test_a_pod_that_waits_for_a_node_keeps_nobody_from_the_present_ones():
    what = of_pool("a", 2)
    preflight = preflight_on(*ONE_FREE)

    assert await preflight.reserving.take(what) == Wait(
        what.grant, CanScaleUp(1, 2, 8, pool="gpu=a100")
    )
    assert len(preflight.reservations) == 1
    assert await preflight.reserving.take(proposal("b")) == Start(proposal("b").grant)


async def test_the_node_that_has_come_belongs_to_the_pod_that_waited_for_it():
    view = StillView(("Node", node("n", 1)), ("Pod", pod("x", 1, on="n")))
    preflight = Preflight(view)
    await preflight.reserving.take(of_pool("a"))

    view.put("Node", node("new", 1))

    assert refused(await preflight.reserving.take(of_pool("b"))) is Reason.TRY_AGAIN


async def test_a_pod_that_does_not_fit_now_is_refused_without_waiting(clock):
    preflight = preflight_on(*ONE_FREE)
    await preflight.reserving.take(proposal("first", 1))
    began = clock.now

    assert refused(await preflight.reserving.take(proposal("a", 2))) is Reason.BUSY
    assert clock.now == began


async def test_a_start_that_waits_too_long_is_refused_with_try_again():
    preflight = preflight_on(*ONE_FREE)
    await preflight.reserving.take(proposal("first"))

    decision = await preflight.reserving.take(proposal("second"))

    assert refused(decision) is Reason.TRY_AGAIN
    assert decision.gpus == ResourceRoom(GPU, asked=1, most_free=1, free=1, most=2, total=2)


async def test_a_waiting_start_goes_on_unchecked_if_the_view_becomes_stale():
    view = StillView(*ONE_FREE)
    preflight = Preflight(view)
    await preflight.reserving.take(proposal("first"))
    second = await waiting(preflight.reserving.take(proposal("second")))

    view.now = Stale(30, "HTTP 500")

    assert (await second) == Start(proposal("second").grant, (ViewNotLive(view.now),))


async def test_beside_a_pod_that_may_land_anywhere_nothing_is_promised():
    preflight = preflight_on(("Node", node("n", 1)))

    unknown = proposal("a", schedulerName="volcano")
    assert isinstance(await preflight.reserving.take(unknown), Start)
    assert refused(await preflight.reserving.take(proposal("b"))) is Reason.TRY_AGAIN


PLACEHOLDERS = [("Pod", pod(f"p{i}", on="n", priority=-1)) for i in range(3)]


@pytest.mark.parametrize("nominated", [0, 1, 2, 3])
async def test_as_many_start_at_once_as_pods_of_lower_priority_make_way(nominated):
    """Also while the scheduler has chosen a node for some of them, and their victims end."""
    view = StillView(("Node", node("n", 3)), *PLACEHOLDERS)
    preflight = Preflight(view)
    for number in range(3):
        assert isinstance(await preflight.reserving.take(proposal(f"s{number}")), Start)
        preflight.reservations.send((NAMESPACE, f"s{number}"))
    for number in range(nominated):
        view.put("Pod", {**pod(f"s{number}"), "status": {"nominatedNodeName": "n"}})

    assert refused(await preflight.reserving.take(proposal("more"))) in (
        Reason.TRY_AGAIN,
        Reason.BUSY,
    )


def nonpreempting(gpus, priority):
    """A pod of a class such as `high-priority-nonpreempting` in Kubernetes' documentation."""
    return "Pod", pod("job", gpus, priority=priority, preemptionPolicy="Never")


async def test_who_ends_no_pods_may_take_what_a_start_of_a_lower_priority_frees():
    preflight = preflight_on(("Node", node("n", 1)), *PLACEHOLDERS[:1], nonpreempting(1, 7))

    (await waiting(preflight.reserving.take(proposal("mine")))).cancel()


@pytest.mark.parametrize("job", [nonpreempting(2, 7), nonpreempting(1, 0)], ids=["large", "low"])
async def test_a_start_takes_what_it_frees_if_no_such_pod_can(job):
    preflight = preflight_on(("Node", node("n", 1)), *PLACEHOLDERS[:1], job)

    assert isinstance(await preflight.reserving.take(proposal("mine")), Start)


async def test_a_start_that_preempts_leaves_room_that_it_cannot_take_to_others():
    elsewhere = labelled(node("m", 1), {"gpu": "t4"})
    preflight = preflight_on(("Node", node("n", 1)), *PLACEHOLDERS[:1], ("Node", elsewhere))

    assert isinstance(await preflight.reserving.take(proposal("a")), Start)
    other = proposal("b", nodeSelector={"gpu": "t4"})
    assert await preflight.reserving.take(other) == Start(other.grant)


async def test_who_fits_elsewhere_now_may_take_what_a_larger_pod_leaves_that_makes_way():
    """The first that preempts ends a pod of two GPUs: who fits on `m` may follow it to `n`."""
    large = pod("large", 2, on="n", priority=-1)
    here = labelled(node("n", 2), {"only": "n"})
    for names in ("any", "first", "last"), ("first", "last", "any"):
        preflight = preflight_on(("Node", here), ("Pod", large), ("Node", node("m", 1)))
        *starts, last = (
            proposal(it, nodeSelector={"gpu": "a100"} if it == "any" else {"only": "n"})
            for it in names
        )
        for it in starts:
            assert isinstance(await preflight.reserving.take(it), Start)
        assert refused(await preflight.reserving.take(last)) is Reason.TRY_AGAIN


@pytest.mark.parametrize("theirs", [{"priority": -5}, {"schedulerName": "volcano"}])
async def test_a_start_does_not_wait_for_a_nominated_pod_that_its_scheduler_leaves_aside(theirs):
    """It has a lower priority, or nobody knows the rules of its scheduler."""
    view = StillView(("Node", node("n", 1)))
    view.put("Pod", {**pod("batch", **theirs), "status": {"nominatedNodeName": "n"}})

    started = asyncio.create_task(Preflight(view).reserving.take(proposal("student")))
    await settle()

    assert started.done()
    assert isinstance(started.result(), Start)


async def test_the_room_of_two_is_promised_to_two_while_one_of_them_has_a_node():
    """The evaluation counts who is nominated, but each of the others alone fits beside them."""
    view = StillView(("Node", node("n", 2)))
    view.put("Pod", {**pod("first"), "status": {"nominatedNodeName": "n"}})
    preflight = Preflight(view)

    assert isinstance(await preflight.reserving.take(proposal("second")), Start)
    assert refused(await preflight.reserving.take(proposal("third"))) is Reason.TRY_AGAIN


WAITED_FIRST = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
GATED_FIRST = [{**WAITED_FIRST[0], "reason": "SchedulingGated"}]


def beside_a_nominated_pod(conditions, **spec):
    """A pod with a node on which two fit, and one that others have to spread from elsewhere."""
    cpu = {"nodeSelector": {"kind": "cpu"}}
    apart = {"labelSelector": {}, "topologyKey": "kind"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    status = {"nominatedNodeName": "n", "conditions": conditions}
    return preflight_on(
        ("Node", node("n", 2)),
        ("Node", labelled(node("cpu", 0), {"kind": "cpu"})),
        ("Pod", {**pod("first", **spec), "status": status}),
        ("Pod", pod("apart", 0, affinity=rule, **cpu)),
    )


@pytest.mark.parametrize("conditions", [[], GATED_FIRST], ids=["none", "gated first"])
async def test_a_start_waits_for_no_pod_elsewhere_while_the_volume_of_another_is_made(conditions):
    """Since Kubernetes 1.35, its scheduler notes the node meanwhile, though it ends nobody."""
    preflight = beside_a_nominated_pod(conditions)

    assert isinstance(await preflight.reserving.take(proposal("second")), Start)
    assert refused(await preflight.reserving.take(proposal("third"))) is Reason.TRY_AGAIN


@pytest.mark.parametrize(
    "asking", [of_pool("a", priority=0), proposal("a", priority=1)], ids=["pool", "priority"]
)
async def test_nobody_is_refused_because_the_volume_of_another_pod_takes_long(asking, clock):
    """Its scheduler keeps the room; but a node comes, or the other pod makes way."""
    view = StillView(("Node", node("n", 1)), ("StorageClass", WAIT))
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    made_on_n = {"volume.kubernetes.io/selected-node": "n"}
    home = claim("claim-a", namespace=NAMESPACE, annotations=made_on_n)
    view.put("PersistentVolumeClaim", home)
    view.put("Pod", pod("other", priority=0, volumes=[HOME]))
    preflight = Preflight(view)
    (await waiting(preflight.reserving.take(proposal("earlier", priority=0)))).cancel()

    clock.now += PATIENCE_SECONDS + 1

    assert isinstance(await preflight.reserving.take(asking), Start)


async def test_a_start_waits_for_all_pods_while_a_scheduler_ends_others_for_a_nominated_one():
    (await waiting(beside_a_nominated_pod(WAITED_FIRST).reserving.take(proposal("a")))).cancel()


@pytest.mark.parametrize("conditions", [[], WAITED_FIRST], ids=["volume is made", "others end"])
async def test_a_start_of_a_higher_priority_waits_for_no_nominated_pod(conditions):
    """Its scheduler would end that pod, too."""
    preflight = beside_a_nominated_pod(conditions, priority=-5)

    assert isinstance(await preflight.reserving.take(proposal("second", 2)), Start)


@pytest.mark.parametrize("conditions", [[], WAITED_FIRST], ids=["volume is made", "others end"])
async def test_what_a_start_frees_is_not_for_a_pod_that_is_nominated_elsewhere(conditions):
    view = StillView(("Node", node("n", 1)), *PLACEHOLDERS[:1])
    view.put("Node", labelled(node("m", 1), {"gpu": "t4"}))
    elsewhere = pod("other", nodeSelector={"gpu": "t4"})
    view.put("Pod", {**elsewhere, "status": {"nominatedNodeName": "m", "conditions": conditions}})

    assert isinstance(await Preflight(view).reserving.take(proposal("mine")), Start)


async def test_a_waiting_start_is_refused_once_the_view_shows_the_other_pod_bound():
    view = StillView(*ONE_FREE)
    preflight = Preflight(view)
    await preflight.reserving.take(proposal("first"))
    second = await waiting(preflight.reserving.take(proposal("second")))

    view.put("Pod", pod("first", on="n"))

    assert refused(await second) is Reason.BUSY


async def test_a_small_start_does_not_overtake_a_larger_one():
    preflight = preflight_on(("Node", node("n", 2)))
    await preflight.reserving.take(proposal("first", 1))
    big = await waiting(preflight.reserving.take(proposal("big", 2)))
    small = await waiting(preflight.reserving.take(proposal("small", 1)))

    preflight.reservations.release((NAMESPACE, "first"))
    assert isinstance(await big, Start)
    assert not small.done()


async def test_the_next_in_the_wait_queue_tries_when_the_one_ahead_leaves():
    preflight = preflight_on(("Node", node("n", 2)))
    await preflight.reserving.take(proposal("first", 1))
    big = await waiting(preflight.reserving.take(proposal("big", 2)))
    small = await waiting(preflight.reserving.take(proposal("small", 1)))

    big.cancel()

    assert isinstance(await small, Start)


async def test_a_start_does_not_wait_behind_one_for_other_nodes():
    cpu_node = "Node", labelled(node("cpu", 0), {"kind": "cpu"})
    preflight = preflight_on(*ONE_FREE, cpu_node)
    await preflight.reserving.take(proposal("first"))
    second = await waiting(preflight.reserving.take(proposal("second")))

    elsewhere = proposal("c", 0, nodeSelector={"kind": "cpu"})

    assert isinstance(await preflight.reserving.take(elsewhere), Start)
    assert not second.done()


async def test_a_pod_that_grew_does_not_take_what_was_promised_to_another():
    preflight = preflight_on(("Node", node("n", 2)))
    await preflight.reserving.take(proposal("a", 1))
    await preflight.reserving.take(proposal("b", 1))

    assert refused(await preflight.reserving.move(proposal("a", 2))) is Reason.TRY_AGAIN
    assert isinstance(await preflight.reserving.move(proposal("b", 1)), Start)


@pytest.mark.each_python
async def test_a_cancelled_start_leaves_the_wait_queue_without_a_reservation():
    preflight = preflight_on(*ONE_FREE)
    await preflight.reserving.take(proposal("first"))
    second = await waiting(preflight.reserving.take(proposal("second")))
    third = await waiting(preflight.reserving.take(proposal("third")))

    second.cancel()
    preflight.reservations.release((NAMESPACE, "first"))
    assert isinstance(await third, Start)
    preflight.reservations.release((NAMESPACE, "third"))

    assert len(preflight.reservations) == 0


# An older pod of the same name, which KubeSpawner deletes when it sends the new one


TAKEN_BY_ANN = (("Node", node("n", 1)), ("Pod", pod("ann", on="n")))
KEY = (NAMESPACE, "ann")


async def test_if_only_an_older_pod_may_be_in_the_way_the_answer_is_unknown():
    preflight = Preflight(StillView(*TAKEN_BY_ANN))

    assert is_unknown(preflight.decider.check(proposal("ann")))
    assert is_unknown(await preflight.reserving.take(proposal("ann")))
    assert is_unknown(await preflight.reserving.move(proposal("ann")))
    assert len(preflight.reservations) == 1


@pytest.mark.parametrize(("older", "asked"), [(1, 3), (0, 2)])
async def test_a_no_that_the_older_pod_does_not_cause_stays(older, asked):
    preflight = preflight_on(
        ("Node", node("n", 4)),
        ("Pod", pod("ann", older, on="n")),
        ("Pod", pod("bob", 3 - older, on="n")),
    )

    assert refused(await preflight.reserving.take(proposal("ann", asked))) is Reason.BUSY


async def test_a_start_waits_until_a_late_view_shows_the_older_pod_gone():
    view = StillView(*TAKEN_BY_ANN)
    preflight = Preflight(view)
    start = await waiting(preflight.reserving.take(proposal("ann")))

    view.remove_pod("ann")

    assert await start == Start(proposal("ann").grant)


async def test_an_older_pod_that_stays_until_it_is_replaced_is_not_waited_for():
    preflight = Preflight(StillView(*TAKEN_BY_ANN), lag=math.inf)
    asked = replace(proposal("ann"), older_stays=True)

    assert is_unknown(await preflight.reserving.take(asked))
    assert is_unknown(await preflight.reserving.move(asked))


async def deleted(view, preflight):
    """Do what KubeSpawner does when a pod of the same name is in the way."""
    preflight.reservations.send(KEY)
    view.remove_pod("ann")
    preflight.reservations.send_again(KEY)


async def test_once_the_older_pod_is_deleted_the_new_one_is_judged():
    view = StillView(*TAKEN_BY_ANN)
    preflight = Preflight(view)
    await preflight.reserving.take(proposal("ann"))
    await preflight.reserving.move(proposal("ann"))

    await deleted(view, preflight)
    view.put("Pod", pod("somebody", on="n"))

    assert refused(await preflight.reserving.move(proposal("ann"))) is Reason.BUSY


async def test_a_promise_to_another_pod_holds_while_the_older_pod_goes():
    nodes = [("Node", node(name, gpus)) for name, gpus in (("large", 4), ("s1", 1), ("s2", 1))]
    view = StillView(*nodes, ("Pod", pod("ann", 4, on="large")))
    preflight = Preflight(view)
    assert is_unknown(await preflight.reserving.take(proposal("ann", 4)))
    assert is_unknown(await preflight.reserving.move(proposal("ann", 4)))
    assert isinstance(await preflight.reserving.take(proposal("bob")), Start)

    await deleted(view, preflight)  # now Bob's pod may land there too

    assert refused(await preflight.reserving.move(proposal("ann", 4))) is Reason.TRY_AGAIN


@pytest.mark.parametrize("on", ["", "n"])
async def test_a_pod_created_without_an_answer_does_not_block_its_owner(on):
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view)
    await preflight.reserving.take(proposal("ann"))
    await preflight.reserving.move(proposal("ann"))
    preflight.reservations.send(KEY)
    preflight.reservations.send_again(KEY)
    view.put("Pod", pod("ann", on=on))

    assert isinstance(await preflight.reserving.move(proposal("ann")), Start)
    assert len(preflight.reservations) == 1

    await deleted(view, preflight)
    bobs = asyncio.ensure_future(preflight.reserving.take(proposal("bob")))
    assert await preflight.reserving.move(proposal("ann")) == Start(proposal("ann").grant)
    await settle()
    assert not bobs.done()
