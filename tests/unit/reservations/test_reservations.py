"""A promise of room, and of a part of limits, ends once, and never before its pod counts itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpuspawner.cluster.health import STALE_AFTER, Live
from gpuspawner.cluster.retries import Backoff
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.usage import Usage
from gpuspawner.reservations.reservations import (
    GONE_SECONDS,
    LEFT_SECONDS,
    LIFETIME_SECONDS,
    Reservations,
)
from gpuspawner.scheduling.verdicts import Verdicts
from tests.unit.makers.clocks import Clock
from tests.unit.makers.policy_accounts import accounts_of
from tests.unit.makers.policy_pods import container, server_pod
from tests.unit.makers.policy_worlds import GPUS
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


def takes(gpus: int) -> Charge:
    return Charge(frozenset({"ann"}), "", {GPUS: gpus})


def counted(usage: Usage) -> int:
    """How many GPUs count for ann."""
    found = usage.of_owner({"ann"}).values()
    return sum(max(int(it.of(GPUS)) for it in charges) for charges in found)


def tell(stage: object, story: str) -> None:
    """Take the steps of a story: each begins with the name of a method."""
    for step in story.split(", "):
        verb, *what = step.split()
        getattr(stage, verb)(*what)


# Room on nodes


class Desk:
    """Reservations for one node with two GPUs, and how often they called `notify`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.notified = 0
        self.view = StillView(("Node", node("n", 2)))
        self.held = Reservations(self.view.state, Verdicts(self.view.state), self.notify)

    def __getattr__(self, verb: str) -> Any:
        """Any other step tells the reservations what becomes of the start or its pod."""
        return partial(getattr(self.held, verb), KEY)

    def notify(self) -> None:
        self.notified += 1

    def promise(self, *unknown: str) -> None:
        spec = {"schedulerName": "volcano"} if unknown else {}
        self.held.take(KEY, proposal("a", **spec).subject)

    def placeholders(self) -> None:
        """Let pods of a lower priority have both GPUs."""
        for name in ("p0", "p1"):
            self.view.put("Pod", pod(name, on="n", priority=-10))

    def show(self, state: str) -> None:
        self.view.put("Pod", PODS[state])

    def hide(self) -> None:
        self.view.remove_pod("a")

    def wait(self, seconds: str) -> None:
        self.clock.now += float(seconds)

    def holds(self) -> None:
        assert len(self.held) == 1

    def is_over(self) -> None:
        assert len(self.held) == 0

    def notifies(self, times: str) -> None:
        assert self.notified == int(times)


ROOM = {
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
    "a running pod holds its room while a watch that is silent may still count as live": (
        f"promise, send, end, wait {round(Backoff().silence + STALE_AFTER)}, holds"
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
        "promise, send, show unbound, holds, hide, is_over"
    ),
    "a pod that runs before one is sent does not end the reservation": (
        "show bound, promise, holds"
    ),
    "an older pod of the same name does not end a reservation": (
        "show bound, promise, send, holds, show ending, holds, hide, holds, show bound, is_over"
    ),
    # A watch may tell of both at once. The room would count twice for as long as the start.
    "the next pod ends a reservation even if it comes with the end of the older one": (
        "show bound, promise, send, show ending, holds, show bound, is_over"
    ),
    "a reservation stays while an older pod is replaced": (
        "show unbound, promise, send, holds, hide, holds, send_again, send, holds, show bound, "
        "is_over"
    ),
    "a pod whose creation had no answer and that will be replaced ends none": (
        "promise, send, send_again, show bound, holds, hide, holds, send, show bound, is_over"
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
    "a pod that the view never shows holds its room for a while after it was sent, however late": (
        f"promise, hold, wait 9999, send, wait {LIFETIME_SECONDS}, holds, wait 0.1, is_over"
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


@pytest.mark.parametrize("story", ROOM.values(), ids=ROOM)
def test_a_reservation_holds_as_long_as_its_pod_may_take_unseen_room(clock, story) -> None:
    tell(Desk(clock), story)


# A part of limits


class Book:
    """What counts for ann, and what a watch shows of her server's pod."""

    def __init__(self) -> None:
        accounts = accounts_of()
        self.ledger, self.usage = accounts.ledger, accounts.usage
        self.ledger.claims = AsAnnotated(NAMESPACE)
        self.promises = accounts.reservations
        accounts.following.health = lambda: Live(0.1)  # type: ignore[method-assign]

    def show(self, gpus: int, uid: int) -> None:
        """Let ann's pod take so many GPUs; with 0, let there be none."""
        if gpus:
            where = {"name": KEY[1], "uid": f"{uid}"}
            self.ledger.put(server_pod(metadata=where, containers=[container(gpu=gpus)]))
        else:
            self.ledger.remove("ServerPod", *KEY)
        self.promises.look()


class Server:
    """What a hub does with ann's server, what the view shows of its pod, and the time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.book = Book()
        self.uid = 0

    def __getattr__(self, verb: str) -> Any:
        """As `Desk.__getattr__`."""
        return partial(getattr(self.book.promises, verb), KEY)

    def grant(self, gpus: str) -> None:
        self.book.promises.charge(KEY, takes(int(gpus)))

    def show(self, gpus: str) -> None:
        self.uid += gpus == "0"
        self.book.show(int(gpus), self.uid)

    def wait(self, seconds: str) -> None:
        self.clock.now += int(seconds)
        self.book.promises.look()

    def counts(self, gpus: str) -> None:
        assert counted(self.book.usage) == int(gpus)


LEFT = round(LEFT_SECONDS)
SHARES = {
    "a second grant of the same start replaces the first": "grant 4, grant 1, counts 1",
    "a pod that was sent counts after the start until it is shown": (
        "grant 2, send, end, counts 2, show 1, counts 1"
    ),
    # The pod that is shown may be one of an earlier start, which the new pod replaces.
    "during a start the charge stays, whatever is shown and however long it takes": (
        f"show 1, grant 4, send, wait {100 * LEFT}, show 0, send_again, wait 0, counts 4"
    ),
    "a pod that is never shown stops counting after a while": (
        f"grant 2, send, wait {100 * LEFT}, end, wait {LEFT}, counts 2, wait 1, counts 0"
    ),
    "a pod that certainly doesn't exist stops counting at once": (
        "grant 2, send, vacate, end, counts 0"
    ),
    "a stopped server leaves no charge of a start that is over": (
        "grant 2, send, end, see_out, counts 0"
    ),
    "stopping what is left of an earlier start ends no charge of the current one": (
        "grant 2, see_out, send, see_out, counts 2"
    ),
    "a new start is charged instead of what an earlier one has left": (
        f"grant 1, send, end, grant 3, wait {2 * LEFT}, counts 3"
    ),
    "a refused start leaves what an earlier one has left": (
        f"grant 3, send, end, grant 1, end, counts 3, wait {LEFT + 1}, counts 0"
    ),
    # A watch that was cut may show a stopped server's pod until the next start is over.
    "an older pod that is still shown is not taken for the one that was sent": (
        "show 1, grant 2, send, end, counts 2, show 0, counts 2, show 2, show 0, counts 0"
    ),
    "what ends without a charge ends quietly": (
        "send, send_again, end, see_out, vacate, wait 0, counts 0"
    ),
}


@pytest.mark.parametrize("story", SHARES.values(), ids=SHARES)
def test_a_start_counts_until_its_pod_is_shown_or_none_can_come(clock, story) -> None:
    tell(Server(clock), story)


class Starts(RuleBasedStateMachine):
    """Any number of starts of one server one after another, with a watch that lags behind.

    `exists` is what the pod in the cluster takes, and `starting` what the current start will take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.book, self.uid = Book(), 0
        self.usage, self.promises = self.book.usage, self.book.promises
        self.exists = 0
        self.starting = 0
        self.is_sent = False
        self.is_in_the_way = False

    @precondition(lambda self: not self.starting)
    @rule(gpus=st.integers(1, 4))
    def begin(self, gpus: int) -> None:
        self.promises.charge(KEY, takes(gpus))
        self.starting, self.is_sent = gpus, False

    @precondition(lambda self: self.starting and not self.is_sent)
    @rule()
    def send(self) -> None:
        self.promises.charge(KEY, takes(self.starting))
        self.promises.send(KEY)
        self.is_sent = True
        self.is_in_the_way = bool(self.exists)
        self.uid += not self.exists
        self.exists = self.exists or self.starting

    @precondition(lambda self: self.starting)
    @rule()
    def end(self) -> None:
        self.promises.end(KEY)
        self.starting = 0

    @precondition(lambda self: self.exists and not self.starting)
    @rule()
    def stop(self) -> None:
        """As the hub does, which waits until the pod is gone."""
        self.exists = 0
        self.is_in_the_way = False
        self.promises.see_out(KEY)

    @rule()
    def see(self) -> None:
        """Let the watch catch up; without a start, what exists counts.

        If an older pod was in the way, the one that was sent may still come.
        """
        self.book.show(self.exists, self.uid)
        if self.is_in_the_way:
            assert counted(self.usage) >= self.exists
        elif not self.starting:
            assert counted(self.usage) == self.exists

    @invariant()
    def what_a_start_will_take_always_counts(self) -> None:
        assert counted(self.usage) >= self.starting


TestAnySequenceOfStarts = Starts.TestCase
