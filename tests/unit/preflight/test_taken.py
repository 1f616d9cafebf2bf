"""A pod that has lost its place to somebody who does not ask here is told so, and no other."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.preflight.decision import Reason
from gpuspawner.preflight.preflight import Preflight
from tests.unit.preflight.worlds import Plain, StillView, node, pod, proposal

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def waiting(name: str, **status: object) -> Plain:
    return {**pod(name), "status": {"phase": "Pending", **status}}


async def test_a_pod_whose_place_went_to_a_stranger_is_told_that_it_was_taken() -> None:
    view = StillView(("Node", node("n", 1)))
    preflight = Preflight(view, look_every=0)
    await preflight.begin(proposal("a"))
    view.put("Pod", pod("stranger", on="n"))
    view.put("Pod", waiting("a", conditions=[UNSCHEDULABLE]))

    refusal = await asyncio.wait_for(preflight.until_taken(proposal("a")), 5)

    assert refusal.reason is Reason.TAKEN
    assert refusal.gpus is not None
    assert refusal.gpus.free == 0


@pytest.mark.parametrize(
    ("seen", "stranger"),
    [
        (waiting("a"), "n"),
        (waiting("a", conditions=[UNSCHEDULABLE]), ""),
        (waiting("a", conditions=[UNSCHEDULABLE], nominatedNodeName="n"), "n"),
        (pod("a", on="n"), ""),
        (waiting("another", conditions=[UNSCHEDULABLE]), "n"),
    ],
    ids=["not looked at", "room again", "being cleared for", "bound", "not seen"],
)
async def test_a_pod_that_may_still_be_bound_is_left_alone(seen: Plain, stranger: str) -> None:
    objects = [("Pod", pod("stranger", on=stranger))] if stranger else []
    view = StillView(("Node", node("n", 1)), *objects, ("Pod", seen))
    preflight = Preflight(view, look_every=0)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(preflight.until_taken(proposal("a")), 0.05)


class Clearing(StillView):
    """A view in which the stranger ends after the second look."""

    looks = 0

    def in_touch(self) -> bool:
        self.looks += 1
        if self.looks == 3:
            self.remove_pod("stranger")
        self.wake()
        return super().in_touch()


async def test_a_pod_that_lost_its_place_for_a_moment_only_is_left_alone() -> None:
    """The scheduler looked before it knew of a pod that had just ended, and looks again."""
    view = Clearing(
        ("Node", node("n", 1)),
        ("Pod", pod("stranger", on="n")),
        ("Pod", waiting("a", conditions=[UNSCHEDULABLE])),
    )
    looking = asyncio.ensure_future(Preflight(view, look_every=0).until_taken(proposal("a")))

    while view.looks < 20:
        assert await view.changed(5)

    assert not looking.done()
    looking.cancel()
