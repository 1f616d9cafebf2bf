"""A reservation ends once, on every way out, and never while its pod may take unseen room."""

from __future__ import annotations

import pytest

from gpuspawner.reservations.reservations import (
    GONE_SECONDS,
    LEFT_SECONDS,
    LIFETIME_SECONDS,
    Reservations,
)
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.clocks import Clock
from tests.unit.makers.worlds import NAMESPACE, StillView, node, pod, proposal

pytestmark = pytest.mark.usefixtures("clock")

KEY = (NAMESPACE, "a")
BOUND = pod("a", on="n")
ENDING = {**BOUND, "metadata": {**BOUND["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
PODS = {
    "unbound": pod("a"),
    "bound": BOUND,
    "ending": ENDING,
    "nominated": {**pod("a"), "status": {"nominatedNodeName": "n"}},
    "unknown": pod("a", schedulerName="volcano"),
}
"""The pod of the server, as the view may show it."""


class Desk:
    """Reservations for one node with two GPUs, and how often they called `notify`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.notified = 0
        self.view = StillView(("Node", node("n", 2)))
        self.held = Reservations(self.view.state, Verdicts(self.view.state), self.notify)

    def notify(self) -> None:
        self.notified += 1

    def promise(self, *unknown: str) -> None:
        spec = {"schedulerName": "volcano"} if unknown else {}
        self.held.take(KEY, proposal("a", **spec).subject)

    def placeholders(self) -> None:
        """Let pods of a lower priority have both GPUs."""
        for name in ("p0", "p1"):
            self.view.put("Pod", pod(name, on="n", priority=-10))

    def hold(self) -> None:
        self.held.hold(KEY)

    def send(self) -> None:
        self.held.send(KEY)

    def send_again(self) -> None:
        self.held.send_again(KEY)

    def release(self) -> None:
        self.held.release(KEY)

    def end(self) -> None:
        self.held.end(KEY)

    def see_out(self) -> None:
        self.held.see_out(KEY)

    def vacate(self) -> None:
        self.held.vacate(KEY)

    def show(self, state: str) -> None:
        if state == "none":
            self.view.remove_pod("a")
        else:
            self.view.put("Pod", PODS[state])

    def wait(self, seconds: str) -> None:
        self.clock.now += float(seconds)

    def holds(self) -> None:
        assert len(self.held) == 1

    def is_over(self) -> None:
        assert len(self.held) == 0

    def notifies(self, times: str) -> None:
        assert self.notified == int(times)


STORIES = {
    "a start that sent no pod ends its reservation at once": (
        "promise, end, is_over, notifies 1, end, notifies 1"
    ),
    "a reservation ends when the view shows its pod bound": (
        "promise, send, show unbound, holds, show bound, is_over"
    ),
    "a reservation outlasts its start until the view shows the pod": (
        "promise, send, end, holds, show bound, is_over"
    ),
    "a pod that the view never shows holds its room for a while only": (
        f"promise, send, wait 9, end, wait {LEFT_SECONDS}, holds, wait 0.1, is_over"
    ),
    "an unbound pod whose start is over holds no reservation": (
        "promise, send, show unbound, holds, end, is_over"
    ),
    "a stopped pod holds its room until the view shows it": (
        "promise, send, end, see_out, holds, show bound, is_over"
    ),
    "a stopped pod that the view never shows holds its room for a moment only": (
        f"promise, send, end, wait 9, see_out, wait {GONE_SECONDS}, holds, wait 0.1, is_over"
    ),
    "the hub's clean-up after a stop makes no reservation longer": (
        f"promise, send, end, see_out, end, wait {GONE_SECONDS + 0.1}, is_over"
    ),
    "room that a start gives back before it sends a pod is free at once": (
        "promise, release, is_over, notifies 1, send, is_over"
    ),
    "room that a start gives back stays until the view shows its pod": (
        f"promise, send, release, wait {LEFT_SECONDS + 1}, holds, show unbound, is_over"
    ),
    "a start that is refused leaves what an earlier one has left": (
        "promise, send, end, promise, end, notifies 1, holds, show bound, is_over"
    ),
    "a start that has no room of its own keeps what an earlier one has left": (
        f"promise, send, end, send, wait {LEFT_SECONDS + 1}, holds, show bound, is_over"
    ),
    "stopping an older pod does not end the reservation of a start under way": (
        f"promise, send, see_out, wait {2 * GONE_SECONDS}, holds"
    ),
    "a reservation ends if the API server has no pod": (
        "promise, send, end, vacate, vacate, is_over, notifies 1"
    ),
    "a reservation ends when its pod was seen and is gone": (
        "promise, send, show unbound, holds, show none, is_over"
    ),
    "a pod that runs before one is sent does not end the reservation": (
        "show bound, promise, holds"
    ),
    "an older pod of the same name does not end a reservation": (
        "show bound, promise, send, holds, show ending, holds, show none, holds, "
        "show bound, is_over"
    ),
    # A watch may tell of both at once. The room would count twice for as long as the start.
    "the next pod ends a reservation even if it comes with the end of the older one": (
        "show bound, promise, send, show ending, holds, show bound, is_over"
    ),
    "a reservation stays while an older pod is replaced": (
        "show unbound, promise, send, holds, show none, holds, send_again, "
        "send, holds, show bound, is_over"
    ),
    "a pod whose creation had no answer and that will be replaced ends none": (
        "promise, send, send_again, show bound, holds, show none, holds, send, show bound, is_over"
    ),
    "a terminating pod ends the reservation of a start that is over": (
        "promise, send, end, show ending, is_over"
    ),
    "a reservation ends after its lifetime": (
        f"promise, wait {LIFETIME_SECONDS}, holds, wait 0.1, is_over"
    ),
    "the room of a start that waits for something else keeps until it goes on": (
        f"promise, hold, wait 9999, holds, promise, wait {LIFETIME_SECONDS}, holds, wait 0.1, "
        "is_over"
    ),
    "a preempting pod keeps its reservation until it has a node in view": (
        "placeholders, promise, send, show unbound, holds, show nominated, is_over"
    ),
    "a pod with an unknown verdict keeps its reservation until it is in view": (
        "promise unknown, send, holds, show unknown, is_over"
    ),
    "ending a missing reservation does nothing": (
        "hold, release, end, vacate, send, send_again, see_out, is_over, notifies 0"
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_reservation_holds_as_long_as_its_pod_may_take_unseen_room(clock, story) -> None:
    desk = Desk(clock)
    for step in story.split(", "):
        verb, *what = step.split()
        getattr(desk, verb)(*what)
