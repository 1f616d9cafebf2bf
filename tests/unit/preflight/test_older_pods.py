"""An older pod of the same name: KubeSpawner deletes it when it sends the new one."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.preflight.decision import Reason, Start
from gpuspawner.preflight.preflight import Preflight
from tests.unit.preflight.worlds import (
    NAMESPACE,
    StillView,
    is_unknown,
    node,
    pod,
    preflight_on,
    proposal,
    refused,
    settle,
    waiting,
)

TAKEN_BY_ANN = (("Node", node("n", 1)), ("Pod", pod("ann", on="n")))
KEY = (NAMESPACE, "ann")


async def test_if_only_an_older_pod_may_be_in_the_way_the_answer_is_unknown() -> None:
    preflight = Preflight(StillView(*TAKEN_BY_ANN))

    assert is_unknown(preflight.check(proposal("ann")))
    assert is_unknown(await preflight.begin(proposal("ann")))
    assert is_unknown(await preflight.confirm(proposal("ann")))
    assert len(preflight.reservations) == 1


async def test_another_users_pod_is_in_the_way() -> None:
    assert refused(await preflight_on(*TAKEN_BY_ANN).begin(proposal("bob"))) is Reason.BUSY


@pytest.mark.parametrize(("older", "asked"), [(1, 3), (0, 2)])
async def test_a_no_that_the_older_pod_does_not_cause_stays(older: int, asked: int) -> None:
    preflight = preflight_on(
        ("Node", node("n", 4)),
        ("Pod", pod("ann", older, on="n")),
        ("Pod", pod("bob", 3 - older, on="n")),
    )

    assert refused(await preflight.begin(proposal("ann", asked))) is Reason.BUSY


async def test_a_start_waits_until_a_late_view_shows_the_older_pod_gone() -> None:
    view = StillView(*TAKEN_BY_ANN)
    preflight = Preflight(view)
    start = await waiting(preflight.begin(proposal("ann")))

    view.remove_pod("ann")

    assert await start == Start(proposal("ann").grant)


async def deleted(view: StillView, preflight: Preflight) -> None:
    """Do what KubeSpawner does when a pod of the same name is in the way."""
    preflight.reservations.send(KEY)
    view.remove_pod("ann")
    preflight.reservations.send_again(KEY)


async def test_once_the_older_pod_is_deleted_the_new_one_is_judged() -> None:
    view = StillView(*TAKEN_BY_ANN)
    preflight = Preflight(view)
    await preflight.begin(proposal("ann"))
    await preflight.confirm(proposal("ann"))

    await deleted(view, preflight)
    view.put("Pod", pod("somebody", on="n"))

    assert refused(await preflight.confirm(proposal("ann"))) is Reason.BUSY


async def test_a_promise_to_another_pod_holds_while_the_older_pod_goes() -> None:
    nodes = [("Node", node(name, gpus)) for name, gpus in (("large", 4), ("s1", 1), ("s2", 1))]
    view = StillView(*nodes, ("Pod", pod("ann", 4, on="large")))
    preflight = Preflight(view)
    assert is_unknown(await preflight.begin(proposal("ann", 4)))
    assert is_unknown(await preflight.confirm(proposal("ann", 4)))
    assert isinstance(await preflight.begin(proposal("bob")), Start)

    await deleted(view, preflight)  # now Bob's pod may land there too

    assert refused(await preflight.confirm(proposal("ann", 4))) is Reason.TRY_AGAIN


@pytest.mark.parametrize("on", ["", "n"])
async def test_a_pod_created_without_an_answer_does_not_block_its_owner(on: str) -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view)
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
