"""A reservation ends once, on every way out, and never while its pod may take unseen room."""

from __future__ import annotations

import pytest

from gpuspawner.preflight.reservations import GONE_SECONDS, LIFETIME_SECONDS, Reservations
from gpuspawner.preflight.verdicts import Verdicts
from tests.unit.preflight.worlds import NAMESPACE, StillView, node, pod, proposal

KEY = (NAMESPACE, "a")


def terminating(plain):
    metadata = {**plain["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**plain, "metadata": metadata}


class Desk(Reservations):
    """Reservations for one node with two GPUs, and how often they called `notify`."""

    def __init__(self, *objects) -> None:
        self.notified = 0
        self.view = StillView(("Node", node("n", 2)), *objects)
        super().__init__(self.view.state, Verdicts(self.view.state), self.notify)

    def notify(self) -> None:
        self.notified += 1

    def promise(self, **spec: object) -> None:
        self.take(KEY, proposal("a", **spec).subject)

    def start(self, **spec: object) -> None:
        """Promise room, and send the pod."""
        self.promise(**spec)
        self.send(KEY)

    def show(self, plain) -> int:
        """Let the view show a pod; return how many reservations are left."""
        self.view.put("Pod", plain)
        return len(self)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_start_that_sent_no_pod_ends_its_reservation_at_once(desk) -> None:
    desk.promise()

    desk.release(KEY)
    assert len(desk) == 0

    desk.release(KEY)
    assert desk.notified == 1


def test_a_reservation_ends_when_the_view_shows_its_pod_bound(desk) -> None:
    desk.start()

    assert desk.show(pod("a")) == 1
    assert desk.show(pod("a", on="n")) == 0


def test_a_reservation_outlasts_its_start_until_the_view_shows_the_pod(desk) -> None:
    desk.start()
    desk.release(KEY)
    assert len(desk) == 1

    assert desk.show(pod("a", on="n")) == 0


def test_an_unbound_pod_whose_start_is_over_holds_no_reservation(desk) -> None:
    desk.start()
    assert desk.show(pod("a")) == 1

    desk.release(KEY)

    assert len(desk) == 0


def test_a_stopped_pod_holds_its_room_until_the_view_shows_it(desk) -> None:
    desk.start()
    desk.release(KEY)
    desk.see_out(KEY)
    assert len(desk) == 1

    assert desk.show(pod("a", on="n")) == 0


def test_a_stopped_pod_that_the_view_never_shows_holds_its_room_for_a_moment_only(
    desk, clock
) -> None:
    desk.start()
    desk.release(KEY)
    clock.now += 2 * GONE_SECONDS
    desk.see_out(KEY)

    clock.now += GONE_SECONDS
    assert len(desk) == 1
    clock.now += 0.1
    assert len(desk) == 0


def test_stopping_an_older_pod_does_not_end_the_reservation_of_a_start_under_way(
    desk, clock
) -> None:
    desk.start()

    desk.see_out(KEY)
    clock.now += 2 * GONE_SECONDS

    assert len(desk) == 1


def test_a_reservation_ends_if_the_api_server_has_no_pod(desk) -> None:
    desk.start()
    desk.release(KEY)

    desk.vacate(KEY)
    desk.vacate(KEY)

    assert len(desk) == 0
    assert desk.notified == 1


def test_a_reservation_ends_when_its_pod_was_seen_and_is_gone(desk) -> None:
    desk.start()
    assert desk.show(pod("a")) == 1

    desk.view.remove_pod("a")
    assert len(desk) == 0


def test_a_pod_that_runs_before_one_is_sent_does_not_end_the_reservation() -> None:
    desk = Desk(("Pod", pod("a", on="n")))
    desk.promise()

    assert len(desk) == 1


def test_an_older_pod_of_the_same_name_does_not_end_a_reservation() -> None:
    desk = Desk(("Pod", pod("a", on="n")))
    desk.start()
    assert len(desk) == 1

    assert desk.show(terminating(pod("a", on="n"))) == 1
    desk.view.remove_pod("a")
    assert len(desk) == 1

    assert desk.show(pod("a", on="n")) == 0


def test_a_reservation_stays_while_an_older_pod_is_replaced() -> None:
    desk = Desk(("Pod", pod("a")))
    desk.start()
    assert len(desk) == 1
    desk.view.remove_pod("a")
    assert len(desk) == 1
    desk.send_again(KEY)

    desk.send(KEY)
    assert len(desk) == 1
    assert desk.show(pod("a", on="n")) == 0


def test_a_terminating_pod_ends_the_reservation_of_a_start_that_is_over(desk) -> None:
    desk.start()
    desk.release(KEY)

    assert desk.show(terminating(pod("a", on="n"))) == 0


def test_a_reservation_ends_after_its_lifetime(desk, clock) -> None:
    desk.promise()

    clock.now += LIFETIME_SECONDS
    assert len(desk) == 1
    clock.now += 0.1
    assert len(desk) == 0


def test_a_preempting_pod_keeps_its_reservation_until_it_has_a_node_in_view() -> None:
    desk = Desk(*(("Pod", pod(f"p{i}", on="n", priority=-10)) for i in range(2)))
    desk.start()

    assert desk.show(pod("a")) == 1
    assert desk.show({**pod("a"), "status": {"nominatedNodeName": "n"}}) == 0


def test_a_pod_with_an_unknown_verdict_keeps_its_reservation_until_it_is_in_view(desk) -> None:
    desk.start(schedulerName="volcano")
    assert len(desk) == 1

    assert desk.show(pod("a", schedulerName="volcano")) == 0


def test_ending_a_missing_reservation_does_nothing(desk) -> None:
    for end in (desk.release, desk.vacate, desk.send, desk.send_again, desk.see_out):
        end(KEY)

    assert len(desk) == 0
    assert desk.notified == 0
