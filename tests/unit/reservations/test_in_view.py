"""A pod is gone only if the view would show it; it may also have lost its room."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.cluster.health import Live, Reading
from gpuspawner.kube.objects import Undecodable
from gpuspawner.preflight.decision import Reason
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.reservations.in_view import UNSEEN_SECONDS, InView
from gpuspawner.reservations.reservations import LEFT_SECONDS
from tests.unit.makers.worlds import NAMESPACE, StillView, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")

KEY = f"{NAMESPACE}/a"


@pytest.mark.parametrize(
    ("objects", "seconds"),
    [([], LEFT_SECONDS), ([("Pod", pod("a"))], UNSEEN_SECONDS)],
    ids=["never seen", "seen before"],
)
@pytest.mark.parametrize(
    ("health", "touch", "is_lost"),
    [(Live(0.5), True, True), (Live(0.5), False, False), (Reading(60.0), True, False)],
    ids=["live", "out of touch", "still reads its first list"],
)
def test_a_pod_is_lost_once_a_live_view_lacks_it_for_a_while(
    clock, objects, seconds, health, touch, is_lost
) -> None:
    view = StillView(*objects)
    view.now, view.touch = health, touch
    in_view = InView(view, KEY)
    view.remove_pod("a")

    assert not in_view.is_lost()
    clock.now += seconds - 1
    assert not in_view.is_lost()
    clock.now += 1
    assert in_view.is_lost() is is_lost


@pytest.mark.parametrize("on", ["", "n"])
def test_a_pod_that_comes_back_into_view_is_not_lost(clock, on) -> None:
    """An older pod of its name, which the view still showed, may have gone."""
    view = StillView(("Pod", pod("a")))
    in_view = InView(view, KEY)
    view.remove_pod("a")
    assert not in_view.is_lost()
    view.put("Pod", pod("a", on=on))
    clock.now += 60

    assert not in_view.is_lost()


def test_a_pod_that_cant_be_decoded_is_not_lost(clock) -> None:
    view = StillView(("Pod", pod("a")))
    in_view = InView(view, KEY)
    view.state.put(Undecodable("Pod", NAMESPACE, "a", "", "an odd field"))
    assert not in_view.is_lost()
    clock.now += 60

    assert not in_view.is_lost()


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending(name, **status):
    return {**pod(name), "status": {"phase": "Pending", **status}}


UNBOUND = pending("a", conditions=[UNSCHEDULABLE])


async def test_a_pod_whose_room_went_to_another_pod_is_refused_as_taken() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view)
    await preflight.taking.take(proposal("a"))
    view.put("Pod", pod("other", on="n"))
    view.put("Pod", UNBOUND)

    refusal = await asyncio.wait_for(preflight.until_taken(proposal("a")), 5)

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

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Preflight(view).until_taken(proposal("a")), 60)


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

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Preflight(view).until_taken(proposal("a")), 60)
    assert view.looks > 3
