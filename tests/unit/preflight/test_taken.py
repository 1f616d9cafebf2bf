"""A start is refused as taken if its pod loses its room to another program's pod."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.preflight.decision import Reason
from gpuspawner.preflight.preflight import Preflight
from tests.unit.preflight.worlds import Plain, StillView, node, pod, proposal

pytestmark = pytest.mark.each_python

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def waiting(name: str, **status: object) -> Plain:
    return {**pod(name), "status": {"phase": "Pending", **status}}


async def test_a_pod_whose_room_went_to_another_pod_is_refused_as_taken() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view, look_every=0)
    await preflight.begin(proposal("a"))
    view.put("Pod", pod("other", on="n"))
    view.put("Pod", waiting("a", conditions=[UNSCHEDULABLE]))

    refusal = await asyncio.wait_for(preflight.until_taken(proposal("a")), 5)

    assert refusal.reason is Reason.TAKEN
    assert refusal.gpus is not None
    assert refusal.gpus.free == 0


@pytest.mark.parametrize(
    ("seen", "other"),
    [
        (waiting("a"), "n"),
        (waiting("a", conditions=[UNSCHEDULABLE]), ""),
        (waiting("a", conditions=[UNSCHEDULABLE], nominatedNodeName="n"), "n"),
        (pod("a", on="n"), ""),
        (waiting("another", conditions=[UNSCHEDULABLE]), "n"),
    ],
    ids=["not tried yet", "room again", "room being cleared", "bound", "not in view"],
)
async def test_a_pod_that_may_still_be_bound_is_left_alone(seen: Plain, other: str) -> None:
    objects = [("Pod", pod("other", on=other))] if other else []
    view = StillView(("Node", node("n", 1)), *objects, ("Pod", seen))
    preflight = Preflight(view, look_every=0)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(preflight.until_taken(proposal("a")), 0.05)


class Clearing(StillView):
    """A view in which the other pod ends after the second look."""

    looks = 0

    def in_touch(self) -> bool:
        self.looks += 1
        if self.looks == 3:
            self.remove_pod("other")
        self.wake()
        return super().in_touch()


async def test_a_pod_that_lost_its_room_only_for_a_moment_is_left_alone() -> None:
    """The scheduler tried it before it knew of a pod that had just ended, and tries again."""
    view = Clearing(
        ("Node", node("n", 1)),
        ("Pod", pod("other", on="n")),
        ("Pod", waiting("a", conditions=[UNSCHEDULABLE])),
    )
    looking = asyncio.ensure_future(Preflight(view, look_every=0).until_taken(proposal("a")))

    while view.looks < 20:
        assert await view.changed(5)

    assert not looking.done()
    looking.cancel()
