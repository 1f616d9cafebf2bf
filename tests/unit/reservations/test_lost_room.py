"""A start is refused as taken if its pod loses its room to another program's pod."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.preflight.decision import Reason
from gpuspawner.preflight.preflight import Preflight
from tests.unit.makers.worlds import StillView, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending(name, **status):
    return {**pod(name), "status": {"phase": "Pending", **status}}


UNBOUND = pending("a", conditions=[UNSCHEDULABLE])


async def test_a_pod_whose_room_went_to_another_pod_is_refused_as_taken() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view)
    await preflight.begin(proposal("a"))
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
