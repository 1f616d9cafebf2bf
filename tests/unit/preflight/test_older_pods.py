"""A pod of the name that is asked for: KubeSpawner deletes it when it sends the new one."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.preflight import Preflight
from tests.unit.preflight.worlds import (
    NAMESPACE,
    StillView,
    node,
    pod,
    preflight_on,
    proposal,
    settle,
)
from tests.waiting import PATIENCE

TAKEN_BY_HER = (("Node", node("n", 1)), ("Pod", pod("ann", on="n")))
KEY = (NAMESPACE, "ann")


def is_unknown(decision: Decision) -> bool:
    return isinstance(decision, Start) and isinstance(decision.notes[0], UnknownRules)


async def test_where_an_older_pod_of_the_name_may_be_all_that_is_in_the_way_nothing_is_known() -> (
    None
):
    preflight = Preflight(StillView(*TAKEN_BY_HER), patience=3600, lag=0.01)

    assert is_unknown(preflight.check(proposal("ann")))
    assert is_unknown(await preflight.begin(proposal("ann")))
    assert is_unknown(await preflight.confirm(proposal("ann")))
    assert len(preflight.reservations) == 1


async def test_for_anybody_else_it_is_in_the_way() -> None:
    decision = await preflight_on(*TAKEN_BY_HER).begin(proposal("bob"))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


@pytest.mark.parametrize(("older", "asked"), [(1, 3), (0, 2)])
async def test_a_no_that_it_has_no_part_in_stays_one(older: int, asked: int) -> None:
    preflight = preflight_on(
        ("Node", node("n", 4)),
        ("Pod", pod("ann", older, on="n")),
        ("Pod", pod("bob", 3 - older, on="n")),
        patience=3600,
    )

    decision = await preflight.begin(proposal("ann", asked))

    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_where_the_view_is_only_late_a_start_waits_until_it_has_gone() -> None:
    view = StillView(*TAKEN_BY_HER)
    preflight = Preflight(view, patience=3600, lag=3600)
    start = asyncio.ensure_future(preflight.begin(proposal("ann")))
    await settle()
    assert not start.done()

    view.remove_pod("ann")

    decision = await asyncio.wait_for(start, PATIENCE)
    assert isinstance(decision, Start)
    assert not decision.notes


async def deleted(view: StillView, preflight: Preflight) -> None:
    """What KubeSpawner does when a pod of the name is in the way."""
    preflight.reservations.send(KEY)
    view.remove_pod("ann")
    preflight.reservations.send_again(KEY)


async def test_once_it_is_deleted_the_new_one_is_judged() -> None:
    view = StillView(*TAKEN_BY_HER)
    preflight = Preflight(view, patience=0.05, lag=0.01)
    await preflight.begin(proposal("ann"))
    await preflight.confirm(proposal("ann"))

    await deleted(view, preflight)
    view.put("Pod", pod("somebody", on="n"))

    decision = await preflight.confirm(proposal("ann"))
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.BUSY


async def test_what_was_promised_to_others_meanwhile_stays_theirs() -> None:
    nodes = [("Node", node(name, gpus)) for name, gpus in (("large", 4), ("s1", 1), ("s2", 1))]
    view = StillView(*nodes, ("Pod", pod("ann", 4, on="large")))
    preflight = Preflight(view, patience=0.05, lag=0.01)
    assert is_unknown(await preflight.begin(proposal("ann", 4)))
    assert is_unknown(await preflight.confirm(proposal("ann", 4)))
    assert isinstance(await preflight.begin(proposal("bob")), Start)

    await deleted(view, preflight)  # and now Bob's pod, too, may land there

    decision = await preflight.confirm(proposal("ann", 4))
    assert isinstance(decision, Refuse)
    assert decision.reason is Reason.TRY_AGAIN


@pytest.mark.parametrize("on", ["", "n"])
async def test_a_pod_that_was_made_though_no_answer_came_keeps_its_owner_from_nothing(
    on: str,
) -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view, patience=3600, lag=0.01)
    await preflight.begin(proposal("ann"))
    await preflight.confirm(proposal("ann"))
    preflight.reservations.send(KEY)
    preflight.reservations.send_again(KEY)
    view.put("Pod", pod("ann", on=on))

    assert isinstance(await preflight.confirm(proposal("ann")), Start)
    assert len(preflight.reservations) == 1

    await deleted(view, preflight)
    bobs = asyncio.ensure_future(preflight.begin(proposal("bob")))
    assert await preflight.confirm(proposal("ann")) == Start(proposal("ann").grant)
    await settle()
    assert not bobs.done()
    bobs.cancel()
