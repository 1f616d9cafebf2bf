"""Which pending pods count, and for how long."""

from __future__ import annotations

import pytest

from gpuspawner.reservations.pending_pods import PATIENCE_SECONDS, PendingPods
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.worlds import NAMESPACE, StillView, node, pod

pytestmark = pytest.mark.usefixtures("clock")


def pending(view):
    return PendingPods(view.state, Verdicts(view.state))


@pytest.mark.parametrize(
    ("plain", "counted"),
    [
        (pod("x", 1), 1),
        (pod("x", 4), 0),
        (pod("x", 1, schedulingGates=[{"name": "kueue"}]), 0),
        (pod("x", 1, schedulerName="volcano"), 0),
        ({**pod("x", 1), "status": {"nominatedNodeName": "n"}}, 0),
        ({**pod("x", 1), "metadata": {"name": "x", "deletionTimestamp": "2026-01-01"}}, 0),
        (pod("x", 1, on="n"), 0),
    ],
    ids=["fits", "no room", "gated", "other scheduler", "nominated", "terminating", "bound"],
)
def test_only_pods_that_the_scheduler_may_bind_now_count(plain, counted) -> None:
    view = StillView(("Node", node("n", 2)), ("Pod", plain))

    assert len(pending(view).demands(())) == counted


def test_pods_with_a_reservation_are_not_pending_pods() -> None:
    view = StillView(("Node", node("n", 2)), ("Pod", pod("mine")), ("Pod", pod("theirs")))

    assert len(pending(view).demands({(NAMESPACE, "mine")})) == 1


def test_a_pod_that_fits_but_stays_unbound_counts_only_for_a_while(clock) -> None:
    unbound = pending(StillView(("Node", node("n", 2)), ("Pod", pod("stuck"))))
    assert len(unbound.demands(())) == 1

    clock.now += PATIENCE_SECONDS
    assert len(unbound.demands(())) == 1
    clock.now += 1
    assert unbound.demands(()) == []


def test_a_pod_that_fits_again_counts_again(clock) -> None:
    view = StillView(("Node", node("n", 1)), ("Pod", pod("stuck")))
    unbound = pending(view)
    unbound.demands(())

    clock.now += PATIENCE_SECONDS + 1
    view.put("Pod", pod("other", on="n"))
    assert unbound.demands(()) == []
    view.remove_pod("other")

    assert len(unbound.demands(())) == 1
