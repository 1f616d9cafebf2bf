"""The decisions of the three gates, on states that a test sets."""

from __future__ import annotations

import asyncio
import time

import pytest

from gpuspawner.cluster.health import Forbidden, Health, Reading, Stale, Unreachable
from gpuspawner.kube.objects import KINDS
from gpuspawner.offers import Offers, ScaleUp
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Difference,
    Reason,
    Refuse,
    Room,
    Start,
    TaintedNodes,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.scaling.declared import CanScaleUp

from .worlds import A100, GPU, NAMESPACE, StillView, ask, node, pod, settle


def preflight_on(*objects: tuple[str, dict[str, object]], patience: float = 0.05) -> Preflight:
    return Preflight(StillView(*objects), patience=patience)


def refusal(preflight: Preflight, what: Ask) -> Refuse:
    decision = preflight.check(what)
    assert isinstance(decision, Refuse), decision
    return decision


ONE_FREE = [("Node", node("n", 2)), ("Pod", pod("x", 1, on="n"))]


# check


def test_a_pod_with_room_starts_without_a_note() -> None:
    what = ask("a", 1)

    assert preflight_on(*ONE_FREE).check(what) == Start(what.grant)


def test_a_refusal_says_what_was_asked_and_what_is_free_on_one_node_and_in_all() -> None:
    objects = [*ONE_FREE, ("Node", node("m", 2)), ("Pod", pod("y", 1, on="m"))]

    refused = refusal(preflight_on(*objects), ask("a", 2))

    assert refused.reason is Reason.BUSY
    assert refused.gpus == Room(GPU, asked=2, most_free=1, free=2, most=2, total=4)
    assert refused.shortage == refused.gpus
    assert refused.candidates == 2
    assert refused.view_age == 0.5
    assert refused.http_status == 409
    assert refused.scheduler_message.startswith(
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    )


def test_more_than_any_node_has_is_impossible() -> None:
    assert refusal(preflight_on(*ONE_FREE), ask("a", 4)).reason is Reason.IMPOSSIBLE


def test_where_gpus_are_free_the_shortage_is_what_their_nodes_lack() -> None:
    hungry = ask("a", 1)
    requests = {GPU: "1", "memory": "300Gi"}
    container = {"name": "notebook", "resources": {"requests": requests}}
    spec = {"containers": [container], "nodeSelector": {"gpu": "a100"}}
    hungry = Ask(NAMESPACE, "a", {"metadata": {"name": "a"}, "spec": spec}, hungry.grant)
    full = [("Node", node("full", 1)), ("Pod", pod("y", 1, on="full"))]

    refused = refusal(preflight_on(*ONE_FREE, *full), hungry)

    gib = 2**30
    assert refused.gpus == Room(GPU, 1, most_free=1, free=1, most=2, total=3)
    assert refused.shortage == Room("memory", 300 * gib, 255 * gib, 255 * gib, 256 * gib, 256 * gib)


def test_a_taint_in_the_way_is_named() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    tainted = [("Node", node(name, 2, taints=[taint])) for name in ("n", "m")]

    refused = refusal(preflight_on(*tainted), ask("a"))

    assert refused.reason is Reason.IMPOSSIBLE
    assert refused.taints == (TaintedNodes("nvidia.com/gpu", "present", "NoSchedule", nodes=2),)
    assert refused.candidates == 0
    assert refused.shortage is None


def test_nodes_that_are_away_are_told_apart_from_nodes_that_are_full() -> None:
    refused = refusal(preflight_on(("Node", node("n", 2, unschedulable=True))), ask("a"))

    assert refused.reason is Reason.AWAY
    assert (refused.away, refused.candidates, refused.taints) == (1, 0, ())


def test_a_server_without_a_gpu_is_refused_without_figures_of_gpus() -> None:
    refused = refusal(preflight_on(), ask("a", 0))

    assert refused.gpus is None


def test_pods_of_lower_priority_give_way_and_it_is_said() -> None:
    placeholder = pod("placeholder", 1, on="n", priority=-10)
    what = ask("a", 1)

    decision = preflight_on(("Node", node("n", 1)), ("Pod", placeholder)).check(what)

    assert decision == Start(what.grant, (AfterPreemption(),))


def test_what_is_not_known_lets_the_pod_start_and_is_said() -> None:
    what = ask("a", 1, schedulerName="volcano")

    decision = preflight_on(*ONE_FREE).check(what)

    assert decision == Start(
        what.grant, (UnknownRules(("another scheduler places the pod: volcano",)),)
    )


def test_a_pod_that_cannot_be_read_starts_and_it_is_said() -> None:
    what = Ask(NAMESPACE, "a", {"spec": {"containers": "many"}}, Grant())

    decision = preflight_on(*ONE_FREE).check(what)

    assert isinstance(decision, Start)
    assert isinstance(decision.notes[0], UnknownRules)


@pytest.mark.parametrize(
    "health",
    [Reading(2), Stale(30, "HTTP 500"), Forbidden(("pods",), "no"), Unreachable("no file")],
)
async def test_without_a_live_view_nothing_is_refused_and_no_seat_is_taken(health: Health) -> None:
    view = StillView()
    view.now = health
    preflight = Preflight(view, first_list=0.01)
    what = ask("a", 8)

    assert preflight.check(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.begin(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.confirm(what) == Start(what.grant, (ViewNotLive(health),))
    assert len(preflight.seats) == 0


async def test_a_pool_that_can_grow_lets_the_pod_wait_and_takes_no_seat() -> None:
    growing = Grant(_growing(max_nodes=2), 1)
    full = [("Node", node("n", 1)), ("Pod", pod("x", 1, on="n"))]
    what = Ask(NAMESPACE, "a", pod("a"), growing)
    preflight = preflight_on(*full)

    assert await preflight.begin(what) == Wait(growing, CanScaleUp(1, 2, 8))
    assert len(preflight.seats) == 0


def test_a_pod_that_no_node_could_hold_does_not_wait_for_one() -> None:
    going = {"name": "c", "namespace": NAMESPACE, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "c"}}
    view = StillView(("Node", node("n", 0)), ("PersistentVolumeClaim", {"metadata": going}))
    for kind in KINDS:
        view.state.mark_known(kind)
    what = Ask(NAMESPACE, "a", pod("a", volumes=[home]), Grant(_growing(max_nodes=2), 1))

    assert isinstance(Preflight(view).check(what), Refuse)


def test_what_is_over_committed_on_one_node_is_not_missing_on_another() -> None:
    shrunk = [("Pod", pod(f"p{i}", 1, on="shrunk")) for i in range(3)]

    refused = refusal(preflight_on(*ONE_FREE, ("Node", node("shrunk", 1)), *shrunk), ask("a", 2))

    assert refused.gpus == Room(GPU, asked=2, most_free=1, free=1, most=2, total=3)


def test_a_pool_that_has_grown_to_its_end_refuses() -> None:
    full = [("Node", node("n", 1)), ("Pod", pod("x", 1, on="n"))]
    what = Ask(NAMESPACE, "a", pod("a"), Grant(_growing(max_nodes=1), 1))

    assert refusal(preflight_on(*full), what).reason is Reason.BUSY


def _growing(max_nodes: int) -> object:
    return type(A100)(
        "a100",
        "A100",
        GPU,
        node_selector={"gpu": "a100"},
        scale_up=ScaleUp(max_nodes, 8),
    )


def test_alternatives_are_judged_as_the_pods_they_would_be() -> None:
    offers = Offers.parse(
        accelerators={
            "a100": {
                "display_name": "A100",
                "node_selector": {"gpu": "a100"},
                "counts": [1, 2, 4],
            }
        }
    )
    accelerator = offers.accelerators["a100"]

    def variant(request: GPURequest) -> tuple[Grant, dict[str, object]]:
        chosen = accelerator if request.accelerator else None
        return Grant(chosen, request.gpus), pod("a", request.gpus)

    what = Ask(NAMESPACE, "a", pod("a", 4), Grant(accelerator, 4), offers=offers, variant=variant)

    [fewer, none] = refusal(preflight_on(*ONE_FREE), what).alternatives

    assert (fewer.grant.gpus, fewer.differences) == (1, (Difference.FEWER_GPUS,))
    assert fewer.gpus == Room(GPU, asked=1, most_free=1, free=1, most=2, total=2)
    assert (none.grant, none.differences, none.gpus) == (Grant(), (Difference.NO_GPU,), None)


def test_what_policy_denies_is_no_alternative() -> None:
    offers = Offers(accelerators={"a100": A100})
    what = Ask(NAMESPACE, "a", pod("a", 4), Grant(A100, 4), offers=offers)

    assert refusal(preflight_on(*ONE_FREE), what).alternatives == ()


# begin, confirm, release


async def test_what_does_not_fit_even_now_is_refused_without_waiting() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(ask("first", 1))
    began = time.monotonic()

    decision = await preflight.begin(ask("a", 2))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY
    assert time.monotonic() - began < 5


async def test_the_seat_is_taken_in_the_tick_of_the_verdict() -> None:
    preflight = preflight_on(*ONE_FREE)
    first = asyncio.ensure_future(preflight.begin(ask("first")))
    second = asyncio.ensure_future(preflight.begin(ask("second")))
    await settle()

    assert first.done()
    assert not second.done()
    second.cancel()


async def test_who_waits_too_long_is_asked_to_try_again() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(ask("first"))

    decision = await preflight.begin(ask("second"))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN
    assert decision.gpus == Room(GPU, asked=1, most_free=1, free=1, most=2, total=2)


async def test_who_waits_while_contact_is_lost_is_let_through_unjudged() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=0.3)
    await preflight.begin(ask("first"))
    second = asyncio.ensure_future(preflight.begin(ask("second")))
    await settle()

    view.now = Stale(30, "HTTP 500")

    assert (await second) == Start(ask("second").grant, (ViewNotLive(view.now),))


async def test_a_preempting_pod_is_promised_alone() -> None:
    """Whom it ends and where it goes is seen only once the scheduler has nominated a node."""
    placeholders = [("Pod", pod(f"p{i}", on="n", priority=-1)) for i in range(2)]
    preflight = preflight_on(("Node", node("n", 2)), *placeholders)

    assert isinstance(await preflight.begin(ask("a")), Start)
    second = await preflight.begin(ask("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_what_nobody_can_judge_takes_no_place_that_was_promised() -> None:
    preflight = preflight_on(("Node", node("n", 1)))

    assert isinstance(await preflight.begin(ask("a", schedulerName="volcano")), Start)
    second = await preflight.begin(ask("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_who_waits_starts_when_the_one_before_gives_up() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(ask("first"))
    second = asyncio.ensure_future(preflight.begin(ask("second")))
    await settle()

    preflight.release(NAMESPACE, "first")

    assert isinstance(await asyncio.wait_for(second, 5), Start)


async def test_who_waits_is_refused_once_the_view_shows_the_other_bound() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    await preflight.begin(ask("first"))
    second = asyncio.ensure_future(preflight.begin(ask("second")))
    await settle()

    view.put("Pod", pod("first", on="n"))
    decision = await asyncio.wait_for(second, 5)

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_nobody_overtakes_those_who_ask_for_more_and_came_before() -> None:
    preflight = preflight_on(("Node", node("n", 2)), patience=60)
    await preflight.begin(ask("first", 1))
    big = asyncio.ensure_future(preflight.begin(ask("big", 2)))
    await settle()
    small = asyncio.ensure_future(preflight.begin(ask("small", 1)))
    await settle()
    assert not small.done()

    preflight.release(NAMESPACE, "first")
    assert isinstance(await asyncio.wait_for(big, 5), Start)
    assert not small.done()
    small.cancel()


async def test_the_next_in_line_tries_as_soon_as_the_one_before_leaves() -> None:
    preflight = preflight_on(("Node", node("n", 2)), patience=60)
    await preflight.begin(ask("first", 1))
    big = asyncio.ensure_future(preflight.begin(ask("big", 2)))
    await settle()
    small = asyncio.ensure_future(preflight.begin(ask("small", 1)))
    await settle()

    big.cancel()

    assert isinstance(await asyncio.wait_for(small, 5), Start)


async def test_a_pod_that_is_seen_and_not_bound_yet_counts_once_with_its_seat() -> None:
    view = StillView(("Node", node("n", 2)))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(ask("first"))
    view.put("Pod", pod("first"))

    assert isinstance(await preflight.begin(ask("second")), Start)


async def test_nobody_waits_behind_those_who_ask_for_something_else() -> None:
    cpu_node = node("cpu", 0)
    cpu_node["metadata"] = {"name": "cpu", "labels": {"kind": "cpu"}}
    preflight = preflight_on(*ONE_FREE, ("Node", cpu_node), patience=60)
    await preflight.begin(ask("first"))
    waiting = asyncio.ensure_future(preflight.begin(ask("second")))
    await settle()

    other = await asyncio.wait_for(preflight.begin(ask("c", 0, nodeSelector={"kind": "cpu"})), 5)

    assert isinstance(other, Start)
    waiting.cancel()


async def test_somebody_elses_pod_that_the_scheduler_is_about_to_bind_is_waited_for() -> None:
    view = StillView(*ONE_FREE, ("Pod", pod("stranger")))
    preflight = Preflight(view, patience=60)
    asking = asyncio.ensure_future(preflight.begin(ask("a")))
    await settle()
    assert not asking.done()

    view.put("Pod", pod("stranger", on="n"))
    assert isinstance(await asyncio.wait_for(asking, 5), Refuse)


@pytest.mark.parametrize(
    "stranger",
    [
        pod("stranger", 2),
        pod("stranger", 1, schedulingGates=[{"name": "kueue"}]),
        pod("stranger", 1, schedulerName="volcano"),
    ],
    ids=["that does not fit", "behind a gate", "of another scheduler"],
)
async def test_somebody_elses_pod_that_may_wait_for_ever_is_not_waited_for(
    stranger: dict[str, object],
) -> None:
    preflight = preflight_on(*ONE_FREE, ("Pod", stranger))

    assert isinstance(await preflight.begin(ask("a")), Start)


async def test_the_pod_really_sent_is_judged_without_its_own_seat_against_it() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(ask("a"))

    assert isinstance(await preflight.confirm(ask("a")), Start)
    assert isinstance(await preflight.confirm(ask("a")), Start)
    assert len(preflight.seats) == 1


async def test_a_pod_that_admission_made_too_large_is_refused_and_its_seat_ends() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(ask("a", 1))

    assert isinstance(await preflight.confirm(ask("a", 2)), Refuse)
    assert len(preflight.seats) == 0


async def test_a_pod_that_grew_does_not_take_what_was_promised_to_another() -> None:
    preflight = preflight_on(("Node", node("n", 2)))
    await preflight.begin(ask("a", 1))
    await preflight.begin(ask("b", 1))

    decision = await preflight.confirm(ask("a", 2))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN
    assert isinstance(await preflight.confirm(ask("b", 1)), Start)


async def test_a_cancelled_start_leaves_neither_a_seat_nor_a_place_in_line() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(ask("first"))
    second = asyncio.ensure_future(preflight.begin(ask("second")))
    third = asyncio.ensure_future(preflight.begin(ask("third")))
    await settle()

    second.cancel()
    preflight.release(NAMESPACE, "first")
    assert isinstance(await asyncio.wait_for(third, 5), Start)
    preflight.release(NAMESPACE, "third")

    assert len(preflight.seats) == 0


def test_releasing_what_was_never_taken_does_nothing() -> None:
    preflight_on().release(NAMESPACE, "nobody")
