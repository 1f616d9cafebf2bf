"""Nodes that are kept free for servers at the front of the line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuspawner.line.holds import MARGIN_SECONDS, Holds, in_order
from gpuspawner.line.line import Ticket
from tests.simulation.cluster import GPU, Cluster, ticket

NOW = 100.0
CPU = "cpu"


def cluster(**nodes: int) -> Cluster:
    made = Cluster((name, "t4", gpus) for name, gpus in nodes.items())
    made.now = NOW
    return made


def held(room: Cluster, node: str, *tickets: Ticket) -> Holds:
    holds = Holds()
    for it in tickets:
        assert holds.hold(it, [node], room, NOW) == []
    return holds


class TwoResources(Cluster):
    """One node with 8 GPUs and 64 CPUs."""

    def __init__(self, free: Mapping[str, int]) -> None:
        super().__init__([("n", "t4", 8)])
        self._free = free

    def free(self, node: str) -> Mapping[str, int]:
        return {**super().free(node), **self._free}

    def size(self, node: str) -> Mapping[str, int]:
        return {**super().size(node), CPU: 64}


def asks(name: str, since: float, **requests: int) -> Ticket:
    amounts = {GPU if it == "gpu" else it: amount for it, amount in requests.items()}
    return Ticket(("hub", name), name, name, amounts, since)


def test_candidates_are_ordered_so_that_the_last_starts_first_by_known_ends() -> None:
    room = cluster(never=4, late=4, soon=4, now=4)
    for node, ends in (("never", None), ("late", 900.0), ("soon", 60.0)):
        room.start(ticket(f"on-{node}", 4, lifetime=ends), node)

    assert in_order(ticket("a", 4), room.nodes, room) == ["never", "late", "soon", "now"]


def test_without_known_ends_the_last_candidate_has_most_of_what_is_needed() -> None:
    room = cluster(a=4, b=4, c=4)
    for node, gpus in (("a", 1), ("b", 3), ("c", 2)):
        room.start(ticket(f"on-{node}", gpus), node)

    assert in_order(ticket("x", 4), room.nodes, room) == ["b", "c", "a"]


def test_all_that_is_needed_has_to_be_free_not_most_of_one_resource() -> None:
    room = TwoResources({GPU: 0, CPU: 64})
    assert not held(room, "n", asks("a", 1, gpu=8, cpu=1)).leaves_room(
        asks("b", 2, gpu=1), "n", room, NOW
    )


def test_a_ticket_holds_the_last_candidate_that_isnt_full_of_holds_ahead() -> None:
    room, holds = cluster(a=4, b=4), Holds()
    first, second, third = (ticket(name, 4, since) for since, name in enumerate("xyz"))

    for it, node in ((first, "b"), (second, "a")):
        assert holds.hold(it, ["a", "b"], room, NOW) == []
        assert holds.node(it.key) == node
    assert holds.hold(third, ["a", "b"], room, NOW) is None
    assert holds.node(third.key) is None


def test_candidates_that_are_full_of_holds_ahead_are_dropped_for_those_behind() -> None:
    room = cluster(a=4, b=4)
    holds, candidates = held(room, "b", ticket("x", 4, 1)), ["a", "b"]
    holds.hold(ticket("y", 4, 2), candidates, room, NOW)

    assert candidates == ["a"]


def test_several_tickets_hold_one_node_if_all_fit_on_it_when_it_is_empty() -> None:
    room = cluster(a=4)
    holds = held(room, "a", ticket("x", 2, 1), ticket("y", 1, 2))

    assert holds.hold(ticket("z", 2, 3), ["a"], room, NOW) is None
    assert holds.hold(ticket("w", 1, 3), ["a"], room, NOW) == []


def test_who_is_ahead_takes_a_node_from_those_behind_for_whom_too_little_is_left() -> None:
    room = cluster(a=4)
    first, second, third = ticket("x", 2, 1), ticket("y", 2, 2), ticket("z", 1, 3)
    holds = held(room, "a", second, third)

    assert holds.hold(first, ["a"], room, NOW) == [third]
    assert (holds.node(second.key), holds.node(third.key)) == ("a", None)
    assert holds.leaves_room(first, "a", room, NOW)
    assert holds.released_since(0) == ["a"]


def test_the_holds_of_one_lane_on_some_nodes_can_end() -> None:
    room = cluster(a=4, b=4)
    one, other, elsewhere = ticket("x", 1, 1), ticket("y", 2, 2), ticket("z", 1, 3)
    holds = held(room, "a", one, other)
    holds.hold(elsewhere, ["b"], room, NOW)

    holds.release_on(["a"], one.lane)

    assert [holds.node(it.key) for it in (one, other, elsewhere)] == [None, "a", "b"]


def test_a_node_is_released_once_and_those_released_last_come_first() -> None:
    room, holds = cluster(a=4, b=4), Holds()
    one, two = ticket("x", 4, 1), ticket("y", 4, 2)
    holds.hold(one, ["a"], room, NOW)
    holds.hold(two, ["b"], room, NOW)
    holds.release(one.key)
    holds.release(one.key)
    assert (holds.releases, holds.released_since(0)) == (1, ["a"])

    holds.release(two.key)
    assert holds.released_since(0) == ["b", "a"]
    assert holds.released_since(1) == ["b"]
    assert holds.released_since(2) == []

    holds.hold(one, ["a"], room, NOW)
    holds.release(one.key)
    assert holds.released_since(0) == ["a", "b"]
    assert holds.released_since(2) == ["a"]


def test_a_server_fits_beside_those_that_are_held_if_enough_is_left() -> None:
    room = cluster(a=8)
    room.start(ticket("runs", 2), "a")
    holds = held(room, "a", ticket("x", 4, 1))

    assert holds.leaves_room(ticket("y", 2, 2), "a", room, NOW)
    assert not holds.leaves_room(ticket("y", 4, 2), "a", room, NOW)


def test_what_a_newcomer_doesnt_request_doesnt_matter() -> None:
    room = TwoResources({GPU: 0, CPU: 60})
    holds = held(room, "n", asks("x", 1, gpu=8, cpu=32))

    assert holds.leaves_room(asks("y", 2, cpu=28), "n", room, NOW)
    assert not holds.leaves_room(asks("y", 2, cpu=29), "n", room, NOW)
    assert not holds.leaves_room(asks("y", 2, cpu=1, gpu=1), "n", room, NOW)


def test_who_needs_nothing_of_a_resource_fits_where_more_than_all_is_in_use() -> None:
    room = TwoResources({GPU: 8, CPU: -2})
    holds = held(room, "n", asks("ahead", 1.0, gpu=1, cpu=0))
    assert holds.leaves_room(asks("behind", 2.0, gpu=1, cpu=0), "n", room, NOW)
    assert not holds.leaves_room(asks("behind", 2.0, gpu=1, cpu=1), "n", room, NOW)


def test_a_node_that_nobody_holds_has_room() -> None:
    room = cluster(a=4, b=4)
    holds = held(room, "a", ticket("x", 4, 1))

    assert holds.leaves_room(ticket("y", 4, 2), "b", room, NOW)


@pytest.mark.parametrize(
    ("lifetime", "is_in_time"),
    [(900 - MARGIN_SECONDS, True), (901 - MARGIN_SECONDS, False), (None, False)],
)
def test_a_server_may_start_on_a_held_node_if_it_ends_before_the_holder_can_start(
    lifetime: float | None, is_in_time: bool
) -> None:
    room = cluster(a=4)
    room.start(ticket("runs", 2, lifetime=900.0), "a")
    holds = held(room, "a", ticket("x", 4, 1))

    assert holds.leaves_room(ticket("y", 2, 2, lifetime=lifetime), "a", room, NOW) is is_in_time


def test_the_first_of_several_holders_to_start_sets_the_time() -> None:
    room = cluster(a=8)
    room.start(ticket("soon", 4, lifetime=300.0), "a")
    room.start(ticket("late", 4, lifetime=3000.0), "a")
    holds = held(room, "a", ticket("x", 6, 1), ticket("y", 2, 2))

    assert not holds.leaves_room(ticket("z", 1, 3, lifetime=1000.0), "a", room, NOW)
    assert holds.leaves_room(ticket("z", 1, 3, lifetime=180.0), "a", room, NOW)


def test_no_lifetime_is_short_enough_if_nobody_knows_when_the_holder_can_start() -> None:
    room = cluster(a=4)
    room.start(ticket("ends", 1, lifetime=600.0), "a")
    room.start(ticket("stays", 1), "a")
    holds = held(room, "a", ticket("x", 4, 1))

    assert not holds.leaves_room(ticket("y", 1, 2, lifetime=1.0), "a", room, NOW)


def test_a_holder_that_could_start_now_has_no_time_to_give() -> None:
    room = cluster(a=4)
    holds = held(room, "a", ticket("x", 4, 1))

    assert not holds.leaves_room(ticket("y", 1, 2, lifetime=1.0), "a", room, NOW)
