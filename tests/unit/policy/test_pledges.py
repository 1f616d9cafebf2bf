"""A pledge counts from the grant until its pod is shown, or until none can come any more."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpuspawner.policy.charges import Charge
from gpuspawner.policy.pledges import LEFT_SECONDS, Pledges
from gpuspawner.policy.policies import Measure, What
from gpuspawner.policy.usage import Usage
from tests.unit.policy.clocks import Clock, clock_of

GPUS = Measure(What.GPUS)
KEY = ("jhub", "jupyter-ann")
OTHER = ("jhub", "jupyter-bob")

clock = pytest.fixture(clock_of("gpuspawner.policy.pledges"))


def takes(gpus: int, owner: str = "ann") -> Charge:
    return Charge(frozenset({owner}), "", {GPUS: gpus})


def counted(usage: Usage, owner: str = "ann") -> int:
    """How many GPUs count for an owner."""
    found = usage.of_owner({owner}).values()
    return sum(max(int(it.of(GPUS)) for it in charges) for charges in found)


@pytest.fixture
def usage() -> Usage:
    return Usage()


@pytest.fixture
def pledges(usage: Usage, clock: Clock) -> Pledges:  # noqa: ARG001, it sets the clock first
    return Pledges(usage)


def test_a_server_counts_from_the_grant_on(usage: Usage, pledges: Pledges) -> None:
    pledges.take(KEY, takes(2))

    assert counted(usage) == 2
    assert counted(usage, "bob") == 0


def test_a_start_that_ends_before_its_pod_is_sent_leaves_nothing(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.release(KEY)

    assert counted(usage) == 0


def test_a_second_grant_of_the_same_start_replaces_the_first(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(4))
    pledges.take(KEY, takes(1))

    assert counted(usage) == 1


def test_a_pod_that_was_sent_counts_after_the_start_until_it_is_shown(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    pledges.release(KEY)
    assert counted(usage) == 2

    usage.put(KEY, takes(1))
    pledges.look()

    assert counted(usage) == 1


def test_a_pod_that_is_shown_before_the_start_ends_leaves_no_pledge_behind(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    usage.put(KEY, takes(2))
    pledges.look()
    assert counted(usage) == 2

    pledges.release(KEY)
    usage.remove(KEY)

    assert counted(usage) == 0


def test_during_a_start_the_pledge_stays_whatever_is_shown_and_however_long_it_takes(
    usage: Usage, pledges: Pledges, clock: Clock
) -> None:
    """The pod that is shown may be one of an earlier start, which the new pod replaces."""
    usage.put(KEY, takes(1))
    pledges.take(KEY, takes(4))
    pledges.send(KEY)
    clock.now += 100 * LEFT_SECONDS
    pledges.look()
    usage.remove(KEY)
    pledges.send_again(KEY)
    pledges.look()

    assert counted(usage) == 4


def test_a_pod_that_is_never_shown_stops_counting_after_a_while(
    usage: Usage, pledges: Pledges, clock: Clock
) -> None:
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    clock.now += 100 * LEFT_SECONDS
    pledges.release(KEY)

    clock.now += LEFT_SECONDS
    pledges.look()
    assert counted(usage) == 2
    clock.now += 0.1
    pledges.look()

    assert counted(usage) == 0


def test_a_pod_that_certainly_does_not_exist_stops_counting_at_once(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    pledges.vacate(KEY)
    pledges.release(KEY)

    assert counted(usage) == 0


def test_a_stopped_server_leaves_no_pledge_of_a_start_that_is_over(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    pledges.release(KEY)
    pledges.see_out(KEY)

    assert counted(usage) == 0


def test_stopping_what_is_left_of_an_earlier_start_ends_no_pledge_of_the_current_one(
    usage: Usage, pledges: Pledges
) -> None:
    pledges.take(KEY, takes(2))
    pledges.see_out(KEY)
    pledges.send(KEY)
    pledges.see_out(KEY)

    assert counted(usage) == 2


def test_a_new_start_pledges_anew_what_an_earlier_one_has_left(
    usage: Usage, pledges: Pledges, clock: Clock
) -> None:
    pledges.take(KEY, takes(1))
    pledges.send(KEY)
    pledges.release(KEY)
    pledges.take(KEY, takes(3))
    clock.now += 2 * LEFT_SECONDS
    pledges.look()

    assert counted(usage) == 3


def test_a_refused_start_leaves_what_an_earlier_one_has_left(
    usage: Usage, pledges: Pledges, clock: Clock
) -> None:
    pledges.take(KEY, takes(3))
    pledges.send(KEY)
    pledges.release(KEY)
    pledges.take(KEY, takes(1))
    pledges.release(KEY)
    assert counted(usage) == 3

    clock.now += LEFT_SECONDS + 0.1
    pledges.look()

    assert counted(usage) == 0


def test_an_older_pod_that_is_still_shown_is_not_taken_for_the_one_that_was_sent(
    usage: Usage, pledges: Pledges
) -> None:
    """A watch that was cut may show a stopped server's pod until the next start is over."""
    usage.put(KEY, takes(1))
    pledges.take(KEY, takes(2))
    pledges.send(KEY)
    pledges.release(KEY)
    assert counted(usage) == 2

    usage.remove(KEY)
    pledges.look()
    assert counted(usage) == 2

    usage.put(KEY, takes(2))
    pledges.look()
    usage.remove(KEY)
    assert counted(usage) == 0


def test_what_ends_without_a_pledge_ends_quietly(usage: Usage, pledges: Pledges) -> None:
    for end in (pledges.send, pledges.send_again, pledges.release, pledges.see_out, pledges.vacate):
        end(KEY)
    pledges.look()

    assert counted(usage) == 0


def test_the_pledges_of_two_servers_end_apart(usage: Usage, pledges: Pledges) -> None:
    pledges.take(KEY, takes(1))
    pledges.take(OTHER, takes(2, "bob"))
    pledges.release(KEY)

    assert (counted(usage), counted(usage, "bob")) == (0, 2)


class Starts(RuleBasedStateMachine):
    """Any number of starts of one server one after another, with a watch that lags behind.

    `exists` is what the pod in the cluster takes, and `starting` what the current start will take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.usage = Usage()
        self.pledges = Pledges(self.usage, left=float("inf"))
        self.exists = 0
        self.starting = 0
        self.is_sent = False
        self.is_in_the_way = False

    @precondition(lambda self: not self.starting)
    @rule(gpus=st.integers(1, 4))
    def begin(self, gpus: int) -> None:
        self.pledges.take(KEY, takes(gpus))
        self.starting, self.is_sent = gpus, False

    @precondition(lambda self: self.starting and not self.is_sent)
    @rule()
    def send(self) -> None:
        self.pledges.take(KEY, takes(self.starting))
        self.pledges.send(KEY)
        self.is_sent = True
        self.is_in_the_way = bool(self.exists)
        self.exists = self.exists or self.starting

    @precondition(lambda self: self.starting)
    @rule()
    def end(self) -> None:
        self.pledges.release(KEY)
        self.starting = 0

    @precondition(lambda self: self.exists and not self.starting)
    @rule()
    def stop(self) -> None:
        """As the hub does, which waits until the pod is gone."""
        self.exists = 0
        self.is_in_the_way = False
        self.pledges.see_out(KEY)

    @rule()
    def see(self) -> None:
        """Let the watch catch up; without a start, what exists counts.

        If an older pod was in the way, it can't be told from the one that was sent.
        """
        if self.exists:
            self.usage.put(KEY, takes(self.exists))
        else:
            self.usage.remove(KEY)
        self.pledges.look()
        if self.is_in_the_way:
            assert counted(self.usage) >= self.exists
        elif not self.starting:
            assert counted(self.usage) == self.exists

    @invariant()
    def what_a_start_will_take_always_counts(self) -> None:
        assert counted(self.usage) >= self.starting


TestAnySequenceOfStarts = Starts.TestCase
