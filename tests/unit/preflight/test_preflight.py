"""The gates and their reservations, on states that a test sets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuspawner.cluster.health import Forbidden, Health, Live, Reading, Stale, Unreachable
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
from gpuspawner.scaling.outlook import CanScaleUp
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

pytestmark = pytest.mark.each_python


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


async def test_a_pod_that_waits_for_a_node_keeps_nobody_from_the_present_ones() -> None:
    pool = Grant(growing(max_nodes=2), 2)
    one_free = [("Node", node("n", 2)), ("Pod", pod("x", 1, on="n"))]
    what = Proposal(NAMESPACE, "a", pod("a", 2), pool)
    preflight = preflight_on(*one_free)

    assert await preflight.begin(what) == Wait(pool, CanScaleUp(1, 2, 8, pool="gpu=a100"))
    assert len(preflight.reservations) == 1
    assert await preflight.begin(proposal("b")) == Start(proposal("b").grant)


async def test_the_node_that_has_come_belongs_to_the_pod_that_waited_for_it() -> None:
    pool = Grant(growing(max_nodes=2), 1)
    view = StillView(("Node", node("n", 1)), ("Pod", pod("x", 1, on="n")))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(Proposal(NAMESPACE, "a", pod("a"), pool))

    view.put("Node", node("new", 1))
    second = await preflight.begin(Proposal(NAMESPACE, "b", pod("b"), pool))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_a_pod_that_does_not_fit_now_is_refused_without_waiting() -> None:
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


async def test_a_start_that_waits_too_long_is_refused_with_try_again() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(proposal("first"))

    decision = await preflight.begin(proposal("second"))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN
    assert decision.gpus == Room(GPU, asked=1, most_free=1, free=1, most=2, total=2)


async def test_a_waiting_start_goes_on_unchecked_if_the_view_becomes_stale() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=0.3)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    view.now = Stale(30, "HTTP 500")

    assert (await second) == Start(proposal("second").grant, (ViewNotLive(view.now),))


LOST = {"out of touch": {"touch": False}, "stale": {"now": Stale(3, "HTTP 500")}}
BACK = {"touch": True, "now": Live(0.5)}
"""What a view says of contact that is lost for a moment, and of contact that is back."""


def says(view: StillView, contact: dict[str, Any]) -> None:
    for name, value in contact.items():
        setattr(view, name, value)
    view.wake()


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_nobody_is_refused_while_contact_is_lost_for_a_moment(lost: dict[str, Any]) -> None:
    """What the view missed may have made room, as here."""
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    says(view, lost)
    asking = asyncio.ensure_future(preflight.begin(proposal("a", 2)))
    await settle()
    assert not asking.done()

    view.remove_pod("x")
    says(view, BACK)

    assert await asyncio.wait_for(asking, PATIENCE) == Start(proposal("a", 2).grant)
    assert len(preflight.reservations) == 1


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_who_still_does_not_fit_is_refused_once_contact_is_back(lost: dict[str, Any]) -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    says(view, lost)
    asking = asyncio.ensure_future(preflight.begin(proposal("a", 2)))
    await settle()
    assert not asking.done()

    says(view, BACK)
    decision = await asyncio.wait_for(asking, PATIENCE)

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_who_fits_starts_at_once_although_contact_is_lost_for_a_moment() -> None:
    view = StillView(*ONE_FREE)
    view.touch = False

    asking = asyncio.ensure_future(Preflight(view, patience=60).begin(proposal("a")))
    await settle()

    assert asking.result() == Start(proposal("a").grant)


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
async def test_a_pod_that_is_sent_keeps_its_reservation_while_contact_is_lost_for_a_moment(
    lost: dict[str, Any],
) -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    await preflight.begin(proposal("a"))
    view.put("Pod", pod("y", on="n"))
    says(view, lost)
    asking = asyncio.ensure_future(preflight.confirm(proposal("a")))
    await settle()
    assert not asking.done()
    assert len(preflight.reservations) == 1

    view.remove_pod("y")
    says(view, BACK)

    assert await asyncio.wait_for(asking, PATIENCE) == Start(proposal("a").grant)


async def test_a_preempting_pod_is_promised_alone() -> None:
    """Which pods it ends, and where it goes, is known only after the scheduler's nomination."""
    placeholders = [("Pod", pod(f"p{i}", on="n", priority=-1)) for i in range(2)]
    preflight = preflight_on(("Node", node("n", 2)), *placeholders)

    assert isinstance(await preflight.begin(proposal("a")), Start)
    second = await preflight.begin(proposal("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_a_pod_with_an_unknown_verdict_holds_a_reservation_too() -> None:
    preflight = preflight_on(("Node", node("n", 1)))

    assert isinstance(await preflight.begin(proposal("a", schedulerName="volcano")), Start)
    second = await preflight.begin(proposal("b"))

    assert isinstance(second, Refuse)
    assert second.reason is Reason.TRY_AGAIN


async def test_a_waiting_start_goes_on_when_the_one_ahead_gives_up() -> None:
    preflight = preflight_on(*ONE_FREE, patience=60)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    preflight.release(NAMESPACE, "first")

    assert isinstance(await asyncio.wait_for(second, PATIENCE), Start)


async def test_a_waiting_start_is_refused_once_the_view_shows_the_other_pod_bound() -> None:
    view = StillView(*ONE_FREE)
    preflight = Preflight(view, patience=60)
    await preflight.begin(proposal("first"))
    second = asyncio.ensure_future(preflight.begin(proposal("second")))
    await settle()

    view.put("Pod", pod("first", on="n"))
    decision = await asyncio.wait_for(second, PATIENCE)

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_a_small_start_does_not_overtake_a_larger_one() -> None:
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


async def test_the_next_in_the_wait_queue_tries_when_the_one_ahead_leaves() -> None:
    preflight = preflight_on(("Node", node("n", 2)), patience=60)
    await preflight.begin(proposal("first", 1))
    big = asyncio.ensure_future(preflight.begin(proposal("big", 2)))
    await settle()
    small = asyncio.ensure_future(preflight.begin(proposal("small", 1)))
    await settle()

    big.cancel()

    assert isinstance(await asyncio.wait_for(small, PATIENCE), Start)


async def test_an_unbound_pod_and_its_reservation_count_once() -> None:
    view = StillView(("Node", node("n", 2)))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(proposal("first"))
    view.put("Pod", pod("first"))

    assert isinstance(await preflight.begin(proposal("second")), Start)


async def test_a_start_does_not_wait_behind_one_for_other_nodes() -> None:
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


async def test_a_start_waits_for_a_pending_pod_that_fits() -> None:
    view = StillView(*ONE_FREE, ("Pod", pod("other")))
    preflight = Preflight(view, patience=60)
    asking = asyncio.ensure_future(preflight.begin(proposal("a")))
    await settle()
    assert not asking.done()

    view.put("Pod", pod("other", on="n"))
    assert isinstance(await asyncio.wait_for(asking, PATIENCE), Refuse)


@pytest.mark.parametrize(
    "other",
    [
        pod("other", 2),
        pod("other", 1, schedulingGates=[{"name": "kueue"}]),
        pod("other", 1, schedulerName="volcano"),
    ],
    ids=["that does not fit", "behind a gate", "of another scheduler"],
)
async def test_a_start_does_not_wait_for_a_pod_that_may_stay_pending(
    other: dict[str, object],
) -> None:
    preflight = preflight_on(*ONE_FREE, ("Pod", other))

    assert isinstance(await preflight.begin(proposal("a")), Start)


async def test_confirm_does_not_count_the_pods_own_reservation() -> None:
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


async def test_a_cancelled_start_leaves_the_wait_queue_without_a_reservation() -> None:
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


def test_releasing_a_missing_reservation_does_nothing() -> None:
    preflight_on().release(NAMESPACE, "nobody")


async def test_a_deleted_pod_holds_no_reservation() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view, patience=0.05)
    await preflight.begin(proposal("first"))
    preflight.reservations.send((NAMESPACE, "first"))
    view.put("Pod", pod("first", on="n"))
    view.remove_pod("first")

    assert isinstance(await preflight.begin(proposal("second")), Start)
