"""Promises: taken, waited for, kept and given up, on states that a test sets."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.cluster.health import Forbidden, Health, Reading, Stale, Unreachable
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import (
    Reason,
    Refuse,
    Room,
    Start,
    ViewNotLive,
    Wait,
)
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.scaling.declared import CanScaleUp
from tests.unit.preflight.worlds import (
    GPU,
    NAMESPACE,
    ONE_FREE,
    StillView,
    growing,
    node,
    pod,
    preflight_on,
    proposal,
    settle,
)
from tests.waiting import PATIENCE


@pytest.mark.parametrize(
    "health",
    [Reading(2), Stale(30, "HTTP 500"), Forbidden(("pods",), "no"), Unreachable("no file")],
)
async def test_without_a_live_view_nothing_is_refused_and_no_reservation_is_taken(
    health: Health,
) -> None:
    view = StillView()
    view.now = health
    preflight = Preflight(view, patience=0.01)
    what = proposal("a", 8)

    assert preflight.check(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.begin(what) == Start(what.grant, (ViewNotLive(health),))
    assert await preflight.confirm(what) == Start(what.grant, (ViewNotLive(health),))
    assert len(preflight.reservations) == 0


async def test_a_pool_that_can_grow_lets_the_pod_wait_and_takes_no_reservation() -> None:
    pool = Grant(growing(max_nodes=2), 1)
    full = [("Node", node("n", 1)), ("Pod", pod("x", 1, on="n"))]
    what = Proposal(NAMESPACE, "a", pod("a"), pool)
    preflight = preflight_on(*full)

    assert await preflight.begin(what) == Wait(pool, CanScaleUp(1, 2, 8))
    assert len(preflight.reservations) == 0


async def test_what_does_not_fit_even_now_is_refused_without_waiting() -> None:
    preflight = preflight_on(*ONE_FREE, patience=3600)
    await preflight.begin(proposal("first", 1))

    async with asyncio.timeout(60):
        decision = await preflight.begin(proposal("a", 2))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_the_reservation_is_taken_in_the_tick_of_the_verdict() -> None:
    preflight = preflight_on(*ONE_FREE)
    first = asyncio.ensure_future(preflight.begin(proposal("first")))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    assert first.done()
    assert not second.done()
    second.cancel()


async def test_who_waits_too_long_is_asked_to_try_again() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(proposal("first"))

    decision = await preflight.begin(proposal("second"))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN
    assert decision.gpus == Room(GPU, asked=1, most_free=1, free=1, most=2, total=2)


async def test_who_waits_while_contact_is_lost_is_let_through_unjudged() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=0.3)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    view.now = Stale(30, "HTTP 500")

    assert (await second) == Start(proposal("second").grant, (ViewNotLive(view.now),))


async def test_a_preempting_pod_is_promised_alone() -> None:
    """Whom it ends and where it goes is seen only once the scheduler has nominated a node."""
    placeholders = [("Pod", pod(f"p{i}", on="n", priority=-1)) for i in range(2)]
    preflight = preflight_on(("Node", node("n", 2)), *placeholders)

    assert isinstance(await preflight.begin(proposal("a")), Start)
    second = await preflight.begin(proposal("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_what_nobody_can_judge_takes_no_place_that_was_promised() -> None:
    preflight = preflight_on(("Node", node("n", 1)))

    assert isinstance(await preflight.begin(proposal("a", schedulerName="volcano")), Start)
    second = await preflight.begin(proposal("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_who_waits_starts_when_the_one_before_gives_up() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    preflight.release(NAMESPACE, "first")

    assert isinstance(await asyncio.wait_for(second, PATIENCE), Start)


async def test_who_waits_is_refused_once_the_view_shows_the_other_bound() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    view.put("Pod", pod("first", on="n"))
    decision = await asyncio.wait_for(second, PATIENCE)

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_nobody_overtakes_those_who_ask_for_more_and_came_before() -> None:
    preflight = preflight_on(("Node", node("n", 2)), patience=60)
    await preflight.begin(proposal("first", 1))
    big = asyncio.ensure_future(preflight.begin(proposal("big", 2)))
    await settle()
    small = asyncio.ensure_future(preflight.begin(proposal("small", 1)))
    await settle()
    assert not small.done()

    preflight.release(NAMESPACE, "first")
    assert isinstance(await asyncio.wait_for(big, PATIENCE), Start)
    assert not small.done()
    small.cancel()


async def test_the_next_in_line_tries_as_soon_as_the_one_before_leaves() -> None:
    preflight = preflight_on(("Node", node("n", 2)), patience=60)
    await preflight.begin(proposal("first", 1))
    big = asyncio.ensure_future(preflight.begin(proposal("big", 2)))
    await settle()
    small = asyncio.ensure_future(preflight.begin(proposal("small", 1)))
    await settle()

    big.cancel()

    assert isinstance(await asyncio.wait_for(small, PATIENCE), Start)


async def test_a_pod_that_is_seen_and_not_bound_yet_counts_once_with_its_reservation() -> None:
    view = StillView(("Node", node("n", 2)))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(proposal("first"))
    view.put("Pod", pod("first"))

    assert isinstance(await preflight.begin(proposal("second")), Start)


async def test_nobody_waits_behind_those_who_ask_for_something_else() -> None:
    cpu_node = node("cpu", 0)
    cpu_node["metadata"] = {"name": "cpu", "labels": {"kind": "cpu"}}
    preflight = preflight_on(*ONE_FREE, ("Node", cpu_node), patience=60)
    await preflight.begin(proposal("first"))
    waiting = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    elsewhere = proposal("c", 0, nodeSelector={"kind": "cpu"})
    other = await asyncio.wait_for(preflight.begin(elsewhere), 5)

    assert isinstance(other, Start)
    waiting.cancel()


async def test_somebody_elses_pod_that_the_scheduler_is_about_to_bind_is_waited_for() -> None:
    view = StillView(*ONE_FREE, ("Pod", pod("stranger")))
    preflight = Preflight(view, patience=60)
    asking = asyncio.ensure_future(preflight.begin(proposal("a")))
    await settle()
    assert not asking.done()

    view.put("Pod", pod("stranger", on="n"))
    assert isinstance(await asyncio.wait_for(asking, PATIENCE), Refuse)


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

    assert isinstance(await preflight.begin(proposal("a")), Start)


async def test_the_pod_really_sent_is_judged_without_its_own_reservation_against_it() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(proposal("a"))

    assert isinstance(await preflight.confirm(proposal("a")), Start)
    assert isinstance(await preflight.confirm(proposal("a")), Start)
    assert len(preflight.reservations) == 1


async def test_a_pod_that_admission_made_too_large_is_refused_and_its_reservation_ends() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(proposal("a", 1))

    assert isinstance(await preflight.confirm(proposal("a", 2)), Refuse)
    assert len(preflight.reservations) == 0


async def test_a_pod_that_grew_does_not_take_what_was_promised_to_another() -> None:
    preflight = preflight_on(("Node", node("n", 2)))
    await preflight.begin(proposal("a", 1))
    await preflight.begin(proposal("b", 1))

    decision = await preflight.confirm(proposal("a", 2))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN
    assert isinstance(await preflight.confirm(proposal("b", 1)), Start)


async def test_a_cancelled_start_leaves_neither_a_reservation_nor_a_place_in_line() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    third = asyncio.ensure_future(preflight.begin(proposal("third")))
    await settle()

    second.cancel()
    preflight.release(NAMESPACE, "first")
    assert isinstance(await asyncio.wait_for(third, PATIENCE), Start)
    preflight.release(NAMESPACE, "third")

    assert len(preflight.reservations) == 0


def test_releasing_what_was_never_taken_does_nothing() -> None:
    preflight_on().release(NAMESPACE, "nobody")


async def test_a_pod_that_came_and_went_while_nobody_asked_holds_nothing() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(proposal("first"))
    preflight.reservations.send((NAMESPACE, "first"))
    view.put("Pod", pod("first", on="n"))
    view.remove_pod("first")

    assert isinstance(await preflight.begin(proposal("second")), Start)
