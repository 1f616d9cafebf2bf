"""Nodes on which servers in line collect what becomes free."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuspawner.line.kept_nodes import MARGIN_SECONDS, PASSED_SECONDS, KeptNodes
from gpuspawner.line.tickets import Ticket
from tests.simulation.cluster import GPU, Cluster, ticket

NOW = 100.0
CPU = "cpu"


def cluster(**nodes: int) -> Cluster:
    made = Cluster((name, "t4", gpus) for name, gpus in nodes.items())
    made.now = NOW
    return made


def collecting(room: Cluster, *tickets: Ticket, part: float = 1.0) -> KeptNodes:
    made = KeptNodes(part)
    for it in tickets:
        assert made.collects(it, room, NOW)
    return made


class TwoResources(Cluster):
    """One node with 8 GPUs and some CPUs."""

    def __init__(self, free: Mapping[str, int]) -> None:
        super().__init__([("n", "t4", 8)])
        self._free = free

    def possible(self, ticket: Ticket) -> frozenset[str]:
        assert ticket.requests
        return frozenset(self.nodes)

    def free(self, node: str) -> Mapping[str, int]:
        return {**super().free(node), **self._free}


def asks(name: str, since: float, **requests: int) -> Ticket:
    amounts = {GPU if it == "gpu" else it: amount for it, amount in requests.items()}
    return Ticket(("hub", name), name, name, amounts, since)


def test_a_server_collects_where_it_starts_first_by_known_ends() -> None:
    room = cluster(never=4, late=4, soon=4, now=4)
    for node, ends in (("never", None), ("late", 900.0), ("soon", 60.0)):
        room.start(ticket(f"on-{node}", 4, lifetime=ends), node)
    them = [ticket(it, 4) for it in "abcd"]
    found = collecting(room, *them)

    assert [found.node(it.key) for it in them] == ["now", "soon", "late", "never"]


def test_without_known_ends_it_collects_where_most_of_what_it_needs_is_free() -> None:
    room = cluster(a=4, b=4, c=4)
    for node, gpus in (("a", 1), ("b", 3), ("c", 2)):
        room.start(ticket(f"on-{node}", gpus), node)
    them = [ticket(it, 4) for it in "xyz"]
    found = collecting(room, *them)

    assert [found.node(it.key) for it in them] == ["a", "c", "b"]


@pytest.mark.parametrize(("part", "most"), [(0.0, 1), (0.25, 2), (0.5, 4), (1.0, 8)])
def test_a_part_of_the_nodes_is_collected_on_at_a_time_or_one(part, most) -> None:
    room = cluster(**{f"n{it}": 4 for it in range(8)}, small=1)
    found = KeptNodes(part)
    them = [ticket(f"p{it}", 4) for it in range(9)]

    assert [it for it in them if found.collects(it, room, NOW)] == them[:most]
    found.release(them[0].key)
    assert found.collects(them[-1], room, NOW)


def test_only_the_nodes_count_that_the_server_itself_could_use() -> None:
    room = cluster(large=8, small=2)
    found = collecting(room, ticket("two", 2), part=0.0)
    assert found.node(("hub", "two")) == "large"
    assert not found.collects(ticket("eight", 8), room, NOW)

    other = collecting(room, ticket("eight", 8), part=0.0)
    assert not other.collects(ticket("two", 2), room, NOW)


def test_who_needs_one_gpu_collects_only_after_others_have_passed_for_long() -> None:
    room, found = cluster(a=1), KeptNodes()
    one = ticket("one", since=NOW)

    assert not found.collects(one, room, NOW + PASSED_SECONDS - 1)
    assert found.collects(one, room, NOW + PASSED_SECONDS)
    assert not found.collects(ticket("new", since=NOW + PASSED_SECONDS), room, NOW)


def test_whatever_a_server_needs_it_collects_after_that_time() -> None:
    room = TwoResources({CPU: 0})
    assert collecting(room, asks("no-gpu", NOW - PASSED_SECONDS, cpu=9)).node(("hub", "no-gpu"))


def test_nobody_collects_who_can_start_nowhere() -> None:
    room = cluster(a=2)
    assert not KeptNodes().collects(ticket("four", 4), room, NOW)


def test_a_node_is_kept_until_its_server_is_gone_or_cant_use_it() -> None:
    room, one = cluster(a=4), ticket("x", 4, 1)
    found = collecting(room, one)
    found.look_anew(room)
    assert found.node(one.key) == "a"

    room.nodes["a"].gpus = 3  # one has failed
    room._reach.clear()
    found.look_anew(room)
    assert found.node(one.key) is None

    found.release(one.key)
    assert found.node(one.key) is None


def test_all_that_is_needed_has_to_be_free_not_most_of_one_resource() -> None:
    room = TwoResources({GPU: 0, CPU: 64})
    found = collecting(room, asks("a", 1, gpu=8, cpu=1))
    assert not found.leaves_room(asks("b", 2, gpu=1), "n", room, NOW)


def test_a_server_fits_beside_one_that_collects_if_enough_is_left() -> None:
    room = cluster(a=8)
    room.start(ticket("runs", 2), "a")
    found = collecting(room, ticket("x", 4, 1))

    assert found.leaves_room(ticket("y", 2, 2), "a", room, NOW)
    assert not found.leaves_room(ticket("y", 4, 2), "a", room, NOW)


def test_who_is_ahead_may_start_where_somebody_behind_collects() -> None:
    room = cluster(a=4)
    found = collecting(room, ticket("x", 4, 2))

    assert found.leaves_room(ticket("ahead", 1, 1), "a", room, NOW)
    assert found.leaves_room(ticket("x", 4, 2), "a", room, NOW)
    assert not found.leaves_room(ticket("behind", 1, 3), "a", room, NOW)


def test_what_a_newcomer_doesnt_request_doesnt_matter() -> None:
    room = TwoResources({GPU: 0, CPU: 60})
    found = collecting(room, asks("x", 1, gpu=8, cpu=32))

    assert found.leaves_room(asks("y", 2, cpu=28), "n", room, NOW)
    assert not found.leaves_room(asks("y", 2, cpu=29), "n", room, NOW)
    assert not found.leaves_room(asks("y", 2, cpu=1, gpu=1), "n", room, NOW)
    assert found.leaves_room(asks("y", 2, cpu=1, gpu=0), "n", room, NOW)


def test_who_needs_nothing_of_a_resource_fits_where_more_than_all_is_in_use() -> None:
    room = TwoResources({GPU: 8, CPU: -2})
    found = collecting(room, asks("ahead", 1, gpu=2, cpu=0))
    assert found.leaves_room(asks("behind", 2, gpu=1, cpu=0), "n", room, NOW)
    assert not found.leaves_room(asks("behind", 2, gpu=1, cpu=1), "n", room, NOW)


def test_a_node_on_which_nobody_collects_has_room() -> None:
    room = cluster(a=4, b=4)
    found = collecting(room, ticket("x", 4, 1))

    assert found.node(("hub", "x")) == "a"
    assert found.leaves_room(ticket("y", 4, 2), "b", room, NOW)


@pytest.mark.parametrize(
    ("lifetime", "is_in_time"),
    [(900 - MARGIN_SECONDS, True), (901 - MARGIN_SECONDS, False), (None, False)],
)
def test_a_server_passes_if_it_ends_before_the_one_that_collects_can_start(
    lifetime: float | None, is_in_time: bool
) -> None:
    room = cluster(a=4)
    room.start(ticket("runs", 2, lifetime=900.0), "a")
    found = collecting(room, ticket("x", 4, 1))

    assert found.leaves_room(ticket("y", 2, 2, lifetime=lifetime), "a", room, NOW) is is_in_time


def test_no_lifetime_is_short_enough_if_nobody_knows_when_the_one_ahead_can_start() -> None:
    room = cluster(a=4)
    room.start(ticket("ends", 1, lifetime=600.0), "a")
    room.start(ticket("stays", 1), "a")
    found = collecting(room, ticket("x", 4, 1))

    assert not found.leaves_room(ticket("y", 1, 2, lifetime=1.0), "a", room, NOW)


def test_one_that_could_start_now_has_no_time_to_give() -> None:
    room = cluster(a=4)
    found = collecting(room, ticket("x", 4, 1))

    assert not found.leaves_room(ticket("y", 1, 2, lifetime=1.0), "a", room, NOW)
