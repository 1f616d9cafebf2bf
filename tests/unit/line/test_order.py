"""Who is next in line."""

from __future__ import annotations

import pytest

from gpuspawner.line.kept_nodes import PART
from gpuspawner.line.order import Serving
from gpuspawner.line.tickets import Line, Ticket
from tests.simulation.cluster import GPU, Cluster, ticket


class Played(Cluster):
    """A cluster whose nodes can go away."""

    away: frozenset[str] = frozenset()
    too_small: frozenset[str] = frozenset()
    """The nodes that can't hold a large server any more."""

    def fitting(self, ticket: Ticket) -> list[str]:
        return [name for name in super().fitting(ticket) if name not in self.away]

    def possible(self, ticket: Ticket) -> frozenset[str]:
        lost = self.too_small if ticket.requests[GPU] > 2 else frozenset()
        return super().possible(ticket) - self.away - lost


class Stage:
    """A cluster and a line."""

    def __init__(self, *nodes: tuple[str, int], part: float = PART) -> None:
        self.cluster = Played((name, "t4" if name[0] == "t" else "a100", n) for name, n in nodes)
        self.line = Line()
        self.serving = Serving(self.line, part)

    def runs(self, *servers: tuple[str, str, int], ends: float | None = None) -> None:
        for name, node, gpus in servers:
            self.cluster.start(ticket(name, gpus, lifetime=ends), node)

    def join(self, *tickets: Ticket) -> None:
        for it in tickets:
            self.serving.join(it)

    def serve(self, now: float = 100.0) -> list[str]:
        self.cluster.now = now
        return [it.person for it in self.serving.serve(self.cluster, now)]

    def end(self, *names: str, now: float = 100.0) -> list[str]:
        for name in names:
            self.cluster.end(("hub", name))
        return self.serve(now)


def test_the_first_in_line_is_called_when_a_gpu_becomes_free() -> None:
    stage = Stage(("t", 1))
    stage.runs(("old", "t", 1))
    stage.join(ticket("bob", since=2), ticket("ann", since=1))

    assert stage.serve() == []
    assert stage.end("old") == ["ann"]
    assert stage.end("ann") == ["bob"]


def test_small_servers_dont_pass_a_large_one_for_the_only_node() -> None:
    stage = Stage(("t", 4))
    stage.runs(("a", "t", 1), ("b", "t", 1), ("c", "t", 1), ("d", "t", 1))
    stage.join(ticket("large", 4, since=1), ticket("small", 1, since=2))

    assert stage.end("a", "b", "c") == []
    assert stage.end("d") == ["large"]
    assert stage.end("large") == ["small"]


def test_small_servers_go_on_where_the_large_one_ahead_doesnt_wait() -> None:
    stage = Stage(("t1", 4), ("t2", 4))
    stage.runs(("a", "t1", 3), ("b", "t2", 4))
    stage.join(ticket("large", 4, since=1), ticket("small", 1, since=2))

    assert stage.serve() == []  # t1 is kept for the large one, because less is missing there
    stage.runs(("filler", "t1", 1))
    assert stage.end("b") == ["large"]
    assert stage.end("filler") == ["small"]


def test_a_large_server_gets_the_node_that_is_kept_for_it_while_small_ones_use_the_others() -> None:
    stage = Stage(("t1", 2), ("t2", 2))
    stage.runs(("a", "t1", 1), ("b", "t2", 1), ("c", "t2", 1))
    stage.join(ticket("large", 2, since=1), *(ticket(f"s{i}", since=2 + i) for i in range(4)))

    assert stage.end("b") == ["s0"]
    assert stage.end("c") == ["s1"]
    assert stage.end("a") == ["large"]
    assert stage.end("large") == ["s2", "s3"]


def test_who_waits_for_another_model_is_never_passed_over() -> None:
    stage = Stage(("t", 1), ("a", 1))
    stage.runs(("x", "a", 1))
    stage.join(ticket("first", since=1, model="a100"), ticket("second", since=2, model="t4"))

    assert stage.serve() == ["second"]


@pytest.mark.parametrize(("lifetime", "called"), [(400.0, ["short"]), (600.0, []), (None, [])])
def test_a_server_that_surely_ends_in_time_may_pass(lifetime, called) -> None:
    stage = Stage(("t", 2))
    stage.cluster.now = 100.0
    stage.runs(("a", "t", 1), ends=600.0)
    stage.join(ticket("large", 2, since=1), ticket("short", since=2, lifetime=lifetime))

    assert stage.serve() == called


def test_nobody_passes_if_the_end_that_the_first_waits_for_isnt_known() -> None:
    stage = Stage(("t", 2))
    stage.runs(("a", "t", 1))
    stage.join(ticket("large", 2, since=1), ticket("short", since=2, lifetime=1.0))

    assert stage.serve() == []


def test_others_go_ahead_on_the_nodes_on_which_nobody_collects() -> None:
    stage = Stage(("t1", 2), ("t2", 2))
    stage.runs(("a", "t1", 1), ("b", "t2", 2))
    stage.join(ticket("l1", 2, 1), ticket("l2", 2, 2), ticket("s1", 1, 3), ticket("s2", 1, 4))

    assert stage.serve() == []
    stage.cluster.end(("hub", "b"))
    assert stage.serve() == ["l1"]  # it needs not wait for the node on which it collects
    assert stage.serve() == []  # that is the second's now
    assert stage.end("a") == ["l2"]
    stage.join(ticket("l3", 2, 5))
    assert stage.end("l2") == ["s1", "s2"]


def test_more_nodes_are_kept_free_if_the_administrator_says_so() -> None:
    stage = Stage(("t1", 2), ("t2", 2), part=1.0)
    stage.runs(("a", "t1", 1), ("b", "t2", 2))
    stage.join(ticket("l1", 2, 1), ticket("l2", 2, 2), ticket("small", 1, 3))

    assert stage.serve() == []
    stage.cluster.end(("hub", "b"))
    stage.runs(("c", "t2", 1))
    assert stage.serve() == []
    assert stage.end("a", "c") == ["l1", "l2"]


def test_who_loses_the_node_collects_on_another() -> None:
    stage = Stage(("m", 4), ("n", 4), ("z", 2))
    stage.runs(("m1", "m", 3), ("n1", "n", 2), ("n2", "n", 2), ("z1", "z", 2))
    stage.join(ticket("large", 4, since=1))
    assert stage.serve() == []

    stage.cluster.away = frozenset("m")
    stage.join(*(ticket(f"small{it}", since=1.5 + it / 100) for it in range(4)))

    assert stage.end("n1") == []
    assert stage.end("n2") == ["large"]


def test_who_comes_back_gets_the_next_place_to_collect() -> None:
    stage = Stage(("t1", 4), ("t2", 4))
    stage.runs(("a", "t1", 3), ("b", "t2", 4))
    first, second = ticket("first", 4, 1), ticket("second", 4, 2)
    stage.join(first, second, ticket("third", 4, 3), ticket("small", 1, 4))
    assert stage.serve() == []
    stage.serving.hold_back(first)
    assert stage.serve() == []
    assert stage.serving.collects_on(second) == "t1"

    stage.serving.let_back(first)
    assert stage.serve() == []
    assert stage.serving.collects_on(second) == "t1"
    stage.serving.leave(second)
    assert stage.serve() == []
    assert stage.serving.collects_on(first) == "t1"


def test_a_node_that_somebody_ahead_cant_use_any_more_is_there_for_others() -> None:
    stage = Stage(("t1", 4), ("t2", 4))
    stage.runs(("a", "t1", 3), ("b", "t2", 4))
    stage.join(ticket("large", 4, since=1), ticket("small", 1, since=2))
    assert stage.serve() == []

    stage.cluster.too_small = frozenset({"t1"})  # one of its GPUs fails
    assert stage.serve() == ["small"]


def test_a_server_that_asks_anew_holds_only_what_it_needs_now() -> None:
    stage = Stage(("t1", 4))
    stage.runs(("a", "t1", 2))
    stage.join(ticket("again", 4, since=1), ticket("small", 1, since=2))
    assert stage.serve() == []

    stage.join(ticket("again", 3, since=1))
    assert stage.serve() == []
    assert stage.end("a") == ["again", "small"]


def test_the_next_one_collects_where_most_is_free_at_that_moment() -> None:
    stage = Stage(("t1", 4), ("t2", 4), ("t3", 4))
    stage.runs(("a", "t1", 1), ("b", "t1", 3), ("c", "t2", 4), ("d", "t3", 4))
    first, second = ticket("first", 4, 1), ticket("second", 4, 2)
    stage.join(first, second)
    assert stage.end("a") == []
    assert stage.end("b") == ["first"]
    assert stage.end("c") == ["second"]
    stage.cluster.end(("hub", "d"))
    stage.runs(("e", "t3", 1))

    third = ticket("third", 4, 30)
    stage.join(third)
    assert stage.serve(now=200.0) == []
    assert stage.serving.collects_on(third) == "t3"


def test_who_is_away_is_passed_over_and_keeps_the_place() -> None:
    stage = Stage(("t", 1))
    stage.runs(("old", "t", 1))
    first, second = ticket("first", since=1), ticket("second", since=2)
    stage.join(first, second, ticket("third", since=3))
    stage.serving.hold_back(first)

    assert stage.end("old") == ["second"]
    stage.serving.let_back(first)
    assert stage.end("second") == ["first"]


def test_who_comes_in_between_is_served_before_those_behind() -> None:
    stage = Stage(("t1", 2), ("t2", 2))
    stage.runs(("a", "t1", 1), ("b", "t2", 2))
    stage.join(ticket("second", 2, 2), ticket("small", 1, 3))
    assert stage.serve() == []

    stage.join(ticket("first", 2, since=1))  # with a place from before a restart of the hub

    assert stage.serve() == []
    assert stage.end("a") == ["first"]


def test_a_small_server_that_came_before_a_large_one_starts_where_that_collects() -> None:
    stage = Stage(("t", 4))
    stage.runs(("a", "t", 4))
    stage.join(ticket("s1", since=1), ticket("large", 4, since=2), ticket("s2", since=3))
    assert stage.serve() == []
    stage.cluster.end(("hub", "a"))
    stage.runs(("b", "t", 3))

    assert stage.serve() == ["s1"]
    assert stage.end("b") == []
    assert stage.end("s1") == ["large"]


@pytest.mark.parametrize(("now", "called"), [(119.0, "plain"), (121.0, "heavy")])
def test_waiting_time_counts_by_weight(now, called) -> None:
    stage = Stage(("t", 1))
    stage.runs(("old", "t", 1))
    stage.join(ticket("plain", since=0), ticket("heavy", since=60, weight=2.0))

    assert stage.end("old", now=now) == [called]


def test_nobody_is_served_who_joined_after_one_who_is_awaited() -> None:
    stage = Stage(("t", 2))
    stage.join(ticket("early", since=5), ticket("late", since=15))

    assert [it.person for it in stage.serving.serve(stage.cluster, 20.0, until=10.0)] == ["early"]
    assert [it.person for it in stage.serving.serve(stage.cluster, 20.0)] == ["late"]
