"""A reservation ends once, on every way out, and never while its pod may take unseen room."""

from __future__ import annotations

import pytest

from gpuspawner.preflight import reservations
from gpuspawner.preflight.reservations import Reservations
from gpuspawner.preflight.verdicts import Verdicts
from tests.unit.preflight.worlds import NAMESPACE, Plain, StillView, node, pod, proposal

KEY = (NAMESPACE, "a")


def terminating(plain: Plain) -> Plain:
    metadata = plain["metadata"]
    assert isinstance(metadata, dict)
    return {**plain, "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}


class Desk:
    """Reservations for one node with two GPUs, and how often they called `notify`."""

    def __init__(self, *objects: tuple[str, Plain], lifetime: float = 60) -> None:
        self.notified = 0
        self.view = StillView(("Node", node("n", 2)), *objects)
        state = self.view.state
        self.reservations = Reservations(state, Verdicts(state), self.notify, lifetime)

    def notify(self) -> None:
        self.notified += 1

    def take(self, **spec: object) -> None:
        subject = proposal("a", **spec).subject
        assert not hasattr(subject, "problem")
        self.reservations.take(KEY, subject)  # type: ignore[arg-type]

    def send(self, **spec: object) -> None:
        self.take(**spec)
        self.reservations.send(KEY)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_start_that_sent_no_pod_ends_its_reservation_at_once(desk: Desk) -> None:
    desk.take()

    desk.reservations.release(KEY)
    assert len(desk.reservations) == 0

    desk.reservations.release(KEY)
    assert desk.notified == 1


def test_a_reservation_ends_when_the_view_shows_its_pod_bound(desk: Desk) -> None:
    desk.send()
    desk.view.put("Pod", pod("a"))
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", on="n"))
    assert len(desk.reservations) == 0


def test_a_reservation_outlasts_its_start_until_the_view_shows_the_pod(
    desk: Desk,
) -> None:
    desk.send()
    desk.reservations.release(KEY)
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", on="n"))
    assert len(desk.reservations) == 0


def test_an_unbound_pod_whose_start_is_over_holds_no_reservation(desk: Desk) -> None:
    desk.send()
    desk.view.put("Pod", pod("a"))
    desk.reservations.release(KEY)

    assert len(desk.reservations) == 0


def test_a_stopped_pod_holds_its_room_until_the_view_shows_it(desk: Desk) -> None:
    desk.send()
    desk.reservations.release(KEY)

    desk.reservations.see_out(KEY)
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", on="n"))
    assert len(desk.reservations) == 0


def test_a_stopped_pod_that_the_view_never_shows_holds_its_room_for_a_moment_only(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reservations._LIFETIMES, reservations.Phase.GONE, 0.0)
    desk.send()
    desk.reservations.release(KEY)

    desk.reservations.see_out(KEY)

    assert len(desk.reservations) == 0


def test_stopping_an_older_pod_does_not_end_the_reservation_of_a_start_under_way(
    desk: Desk,
) -> None:
    desk.send()

    desk.reservations.see_out(KEY)

    assert len(desk.reservations) == 1


def test_a_reservation_ends_if_the_api_server_has_no_pod(desk: Desk) -> None:
    desk.send()
    desk.reservations.release(KEY)

    desk.reservations.vacate(KEY)
    desk.reservations.vacate(KEY)

    assert len(desk.reservations) == 0
    assert desk.notified == 1


def test_a_reservation_ends_when_its_pod_was_seen_and_is_gone(desk: Desk) -> None:
    desk.send()
    desk.view.put("Pod", pod("a"))
    assert len(desk.reservations) == 1

    desk.view.remove_pod("a")
    assert len(desk.reservations) == 0


def test_a_pod_that_runs_before_one_is_sent_does_not_end_the_reservation() -> None:
    desk = Desk(("Pod", pod("a", on="n")))
    desk.take()

    assert len(desk.reservations) == 1


def test_an_older_pod_of_the_same_name_does_not_end_a_reservation() -> None:
    desk = Desk(("Pod", pod("a", on="n")))
    desk.send()
    assert len(desk.reservations) == 1

    desk.view.put("Pod", terminating(pod("a", on="n")))
    assert len(desk.reservations) == 1
    desk.view.remove_pod("a")
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", on="n"))
    assert len(desk.reservations) == 0


def test_the_next_pod_ends_a_reservation_even_if_it_comes_with_the_end_of_the_older_one() -> None:
    """A watch may tell of both at once. The room would count twice for as long as the start."""
    desk = Desk(("Pod", pod("a", on="n")))
    desk.send()
    desk.view.put("Pod", terminating(pod("a", on="n")))
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", on="n"))

    assert len(desk.reservations) == 0


def test_a_reservation_stays_while_an_older_pod_is_replaced() -> None:
    desk = Desk(("Pod", pod("a")))
    desk.send()
    assert len(desk.reservations) == 1
    desk.view.remove_pod("a")
    assert len(desk.reservations) == 1
    desk.reservations.send_again(KEY)

    desk.reservations.send(KEY)
    assert len(desk.reservations) == 1
    desk.view.put("Pod", pod("a", on="n"))
    assert len(desk.reservations) == 0


def test_a_terminating_pod_ends_the_reservation_of_a_start_that_is_over(
    desk: Desk,
) -> None:
    desk.send()
    desk.reservations.release(KEY)
    desk.view.put("Pod", terminating(pod("a", on="n")))

    assert len(desk.reservations) == 0


def test_a_reservation_ends_after_its_lifetime() -> None:
    desk = Desk(lifetime=0.0)
    desk.take()

    assert len(desk.reservations) == 0


def test_a_preempting_pod_keeps_its_reservation_until_it_has_a_node_in_view() -> None:
    desk = Desk(*(("Pod", pod(f"p{i}", on="n", priority=-10)) for i in range(2)))
    desk.send()
    desk.view.put("Pod", pod("a"))
    assert len(desk.reservations) == 1

    desk.view.put("Pod", {**pod("a"), "status": {"nominatedNodeName": "n"}})
    assert len(desk.reservations) == 0


def test_a_pod_with_an_unknown_verdict_keeps_its_reservation_until_it_is_in_view(
    desk: Desk,
) -> None:
    desk.send(schedulerName="volcano")
    assert len(desk.reservations) == 1

    desk.view.put("Pod", pod("a", schedulerName="volcano"))
    assert len(desk.reservations) == 0


def test_ending_a_missing_reservation_does_nothing(desk: Desk) -> None:
    held = desk.reservations
    for end in (
        held.release,
        held.vacate,
        held.send,
        held.send_again,
        held.see_out,
    ):
        end(KEY)

    assert len(desk.reservations) == 0
    assert desk.notified == 0
