"""A pod gets no node if another pod takes the room that it was promised."""

import asyncio

import pytest

from gpuspawner.launch.unscheduled import PromisedRoom
from gpuspawner.preflight.decision import HeldBy, Reason
from gpuspawner.preflight.preflight import Preflight
from tests.unit.makers.launches import UNSCHEDULABLE, answered
from tests.unit.makers.storage import HOME, STORAGE_KINDS
from tests.unit.makers.worlds import ALONE, GPU, StillView, labelled, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")


def pending(name, **status):
    return {**pod(name), "status": {"phase": "Pending", **status}}


UNBOUND = pending("a", conditions=[UNSCHEDULABLE])


def promised(view, asked):
    """Ask about the room of a pod as its start does, for a minute."""
    room = PromisedRoom(view, Preflight(view).decider.check_sent, asked)
    return asyncio.wait_for(answered(view, room.look), 60)


async def test_a_pod_whose_room_went_to_another_pod_is_refused_as_taken():
    view = StillView(("Node", node("n", 1)), ("Pod", pod("other", on="n")), ("Pod", UNBOUND))

    refusal = await promised(view, proposal("a"))

    assert refusal.reason is Reason.TAKEN
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
async def test_a_pod_that_may_still_be_bound_is_left_alone(seen, other):
    objects = [("Pod", pod("other", on=other))] if other else []

    with pytest.raises(TimeoutError):
        await promised(StillView(("Node", node("n", 1)), *objects, ("Pod", seen)), proposal("a"))


class Clearing(StillView):
    """A view in which the other pod is gone at each third look."""

    looks = 0

    def in_touch(self):
        self.looks += 1
        if self.looks % 3:
            self.put("Pod", pod("other", on="n"))
        else:
            self.remove_pod("other")
        return super().in_touch()


async def test_a_pod_that_lost_its_room_only_for_a_moment_is_left_alone():
    """The scheduler tried it before it knew of a pod that had just ended, and tries again."""
    view = Clearing(("Node", node("n", 1)), ("Pod", UNBOUND))

    with pytest.raises(TimeoutError):
        await promised(view, proposal("a"))
    assert view.looks > 3


async def test_a_pod_whose_node_has_gone_is_refused_if_others_would_refuse_it_for_its_shares():
    sharing = {f"{GPU}.sharing-strategy": "mps", f"{GPU}.replicas": "4"}
    others = (("Pod", pod(f"x{number}", 1, on="s")) for number in range(3))
    unbound = {**UNBOUND, "spec": pod("a", 2)["spec"]}
    view = StillView(("Node", labelled(node("s", 4), sharing)), *others, ("Pod", unbound))

    refusal = await promised(view, proposal("a", 2))

    assert (refusal.reason, refusal.one_share) == (Reason.IMPOSSIBLE, True)


async def test_a_pod_whose_home_another_one_has_got_alone_is_refused_for_that():
    other = "Pod", pod("other", 0, on="n", volumes=[HOME])
    unbound = {**UNBOUND, "spec": pod("a", 1, volumes=[HOME])["spec"]}
    view = StillView(("Node", node("n", 1)), *ALONE, other, ("Pod", unbound))
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)

    refusal = await promised(view, proposal("a", volumes=[HOME]))

    assert (refusal.reason, refusal.held) == (Reason.BUSY, HeldBy.OTHER)
