"""Whether a pod surely has room, so that it may be kept off other nodes."""

from __future__ import annotations

from gpuspawner.cluster.health import Stale
from gpuspawner.policy import Grant
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.preflight.worlds import (
    NAMESPACE,
    ONE_FREE,
    StillView,
    growing,
    node,
    pod,
    preflight_on,
    proposal,
)


def test_a_pod_that_fits_surely_has_room() -> None:
    preflight = preflight_on(*ONE_FREE)

    assert preflight.is_sure_of(proposal("a", 1))
    assert not preflight.is_sure_of(proposal("a", 2))


async def test_what_is_promised_to_others_is_no_sure_room() -> None:
    preflight = preflight_on(*ONE_FREE)
    await preflight.begin(proposal("other", 1))

    assert not preflight.is_sure_of(proposal("a", 1))
    assert preflight.is_sure_of(proposal("other", 1))


def test_a_node_that_can_come_is_sure_room() -> None:
    what = Proposal(NAMESPACE, "a", pod("a", 2), Grant(growing(max_nodes=2), 2))

    assert preflight_on(*ONE_FREE).is_sure_of(what)


def test_nothing_is_sure_without_a_live_view() -> None:
    view = StillView(("Node", node("n", 2)))
    view.now = Stale(30, "HTTP 500")

    assert not Preflight(view).is_sure_of(proposal("a", 1))


def test_a_pod_that_nobody_can_read_has_no_sure_room() -> None:
    unreadable = Proposal(NAMESPACE, "a", {"spec": None}, proposal("a").grant)

    assert not preflight_on(*ONE_FREE).is_sure_of(unreadable)
