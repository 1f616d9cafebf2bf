"""A start counts from its grant until its pod is shown, or until none can come any more."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.charges import Charge, Meter
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.policies import Measure, What
from gpuspawner.policies.usage import Usage
from gpuspawner.reservations.reservations import COUNTED_SECONDS
from gpuspawner.scheduling import Rules
from tests.unit.makers.clocks import Clock
from tests.unit.makers.policy_pods import container, server_pod
from tests.unit.makers.scripted import ScriptedServer
from tests.unit.makers.worlds import no_promises

pytestmark = pytest.mark.usefixtures("clock")

GPUS = Measure(What.GPUS)
KEY = ("jhub", "jupyter-ann")
OTHER = ("jhub", "jupyter-bob")
METER = Meter(Rules.of_version("1.36"))


def takes(gpus: int, owner: str = "ann") -> Charge:
    return Charge(frozenset({owner}), "", {GPUS: gpus})


def counted(usage: Usage, owner: str = "ann") -> int:
    """How many GPUs count for an owner."""
    found = usage.of_owner({owner}).values()
    return sum(max(int(it.of(GPUS)) for it in charges) for charges in found)


class Book(Accounts):
    """Pods that are whoever's they say, and all of them known."""

    def __init__(self) -> None:
        configuration = ScriptedServer().configuration
        super().__init__(configuration, "jhub", lambda: METER, Contact(), no_promises())
        self.ledger.claims = AsAnnotated("jhub")
        self.following.health = lambda: Live(0.1)  # type: ignore[method-assign]

    def show(self, gpus: int, uid: int) -> None:
        """Let ann's pod take so many GPUs; with 0, let there be none."""
        if gpus:
            where = {"name": KEY[1], "uid": f"{uid}"}
            self.ledger.put(server_pod(metadata=where, containers=[container(gpu=gpus)]))
        else:
            self.ledger.remove("ServerPod", *KEY)


class Server:
    """What a hub does with ann's server, what the view shows of its pod, and the time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.book = Book()
        self.usage, self.promises = self.book.usage, self.book.reservations
        self.uid = 0

    def grant(self, gpus: int) -> None:
        self.promises.charge(KEY, takes(gpus))

    def send(self) -> None:
        self.promises.send(KEY)

    def send_again(self) -> None:
        self.promises.send_again(KEY)

    def vacate(self) -> None:
        self.promises.vacate(KEY)

    def end(self) -> None:
        self.promises.end(KEY)

    def stop(self) -> None:
        self.promises.see_out(KEY)

    def show(self, gpus: int) -> None:
        self.uid += not gpus
        self.book.show(gpus, self.uid)
        self.promises.look()

    def wait(self, seconds: int) -> None:
        self.clock.now += seconds
        self.promises.look()

    def counts(self, gpus: int) -> None:
        assert counted(self.usage) == gpus


LEFT = round(COUNTED_SECONDS)
STORIES = {
    "a server counts from the grant on": "grant 2, counts 2",
    "a start that ends before its pod is sent leaves nothing": "grant 2, end, counts 0",
    "a second grant of the same start replaces the first": "grant 4, grant 1, counts 1",
    "a pod that was sent counts after the start until it is shown": (
        "grant 2, send, end, counts 2, show 1, counts 1"
    ),
    "a pod that is shown before the start ends leaves no charge behind": (
        "grant 2, send, show 2, counts 2, end, show 0, counts 0"
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
        "grant 2, send, end, stop, counts 0"
    ),
    "stopping what is left of an earlier start ends no charge of the current one": (
        "grant 2, stop, send, stop, counts 2"
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
        "send, send_again, end, stop, vacate, wait 0, counts 0"
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_start_counts_until_its_pod_is_shown_or_none_can_come(clock, story) -> None:
    server = Server(clock)
    for step in story.split(", "):
        verb, *amounts = step.split()
        getattr(server, verb)(*map(int, amounts))


def test_the_charges_of_two_servers_end_apart() -> None:
    book = Book()
    usage, promises = book.usage, book.reservations
    promises.charge(KEY, takes(1))
    promises.charge(OTHER, takes(2, "bob"))
    assert (counted(usage), counted(usage, "bob")) == (1, 2)

    promises.end(KEY)

    assert (counted(usage), counted(usage, "bob")) == (0, 2)


class Starts(RuleBasedStateMachine):
    """Any number of starts of one server one after another, with a watch that lags behind.

    `exists` is what the pod in the cluster takes, and `starting` what the current start will take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.book, self.uid = Book(), 0
        self.usage, self.promises = self.book.usage, self.book.reservations
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
        self.promises.look()
        if self.is_in_the_way:
            assert counted(self.usage) >= self.exists
        elif not self.starting:
            assert counted(self.usage) == self.exists

    @invariant()
    def what_a_start_will_take_always_counts(self) -> None:
        assert counted(self.usage) >= self.starting


TestAnySequenceOfStarts = Starts.TestCase
