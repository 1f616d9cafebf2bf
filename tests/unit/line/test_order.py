"""Who is next in line."""

from gpuspawner.line.kept_nodes import PART
from tests.simulation.cluster import ticket
from tests.unit.makers.witness import Witness


class Stage:
    """A cluster and a line."""

    def __init__(self, *nodes, part=PART):
        self.cluster = Witness(((name, "t4", gpus) for name, gpus in nodes), part)
        self.serving = self.cluster.serving

    def runs(self, *servers):
        for name, node, gpus in servers:
            self.cluster.start(ticket(name, gpus), node)

    def join(self, *tickets):
        for it in tickets:
            self.serving.join(it)

    def serve(self, now=100.0):
        self.cluster.now = now
        return [it.person for it in self.serving.serve(self.cluster, now)]

    def end(self, *names, now=100.0):
        for name in names:
            self.cluster.end(("hub", name))
        return self.serve(now)


def test_small_servers_dont_pass_a_large_one_for_the_only_node():
    stage = Stage(("t", 4))
    stage.runs(("a", "t", 1), ("b", "t", 1), ("c", "t", 1), ("d", "t", 1))
    stage.join(ticket("large", 4, since=1), ticket("small", 1, since=2))

    assert stage.end("a", "b", "c") == []
    assert stage.end("d") == ["large"]
    assert stage.end("large") == ["small"]


def test_a_large_server_gets_the_node_that_is_kept_for_it_while_small_ones_use_the_others():
    stage = Stage(("t1", 2), ("t2", 2))
    stage.runs(("a", "t1", 1), ("b", "t2", 1), ("c", "t2", 1))
    stage.join(ticket("large", 2, since=1), *(ticket(f"s{i}", since=2 + i) for i in range(4)))

    assert stage.end("b") == ["s0"]
    assert stage.end("c") == ["s1"]
    assert stage.end("a") == ["large"]
    assert stage.end("large") == ["s2", "s3"]


def test_others_go_ahead_on_the_nodes_on_which_nobody_collects():
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


def test_more_nodes_are_kept_free_if_the_administrator_says_so():
    stage = Stage(("t1", 2), ("t2", 2), part=1.0)
    stage.runs(("a", "t1", 1), ("b", "t2", 2))
    stage.join(ticket("l1", 2, 1), ticket("l2", 2, 2), ticket("small", 1, 3))

    assert stage.serve() == []
    stage.cluster.end(("hub", "b"))
    stage.runs(("c", "t2", 1))
    assert stage.serve() == []
    assert stage.end("a", "c") == ["l1", "l2"]


def test_who_loses_the_node_collects_on_another():
    stage = Stage(("m", 4), ("n", 4), ("z", 2))
    stage.runs(("m1", "m", 3), ("n1", "n", 2), ("n2", "n", 2), ("z1", "z", 2))
    stage.join(ticket("large", 4, since=1))
    assert stage.serve() == []

    stage.cluster.away = {"m"}
    stage.join(*(ticket(f"small{it}", since=1.5 + it / 100) for it in range(4)))

    assert stage.end("n1") == []
    assert stage.end("n2") == ["large"]


def test_who_comes_back_gets_the_next_place_to_collect():
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


def test_a_server_that_asks_anew_holds_only_what_it_needs_now():
    stage = Stage(("t1", 4))
    stage.runs(("a", "t1", 2))
    stage.join(ticket("again", 4, since=1), ticket("small", 1, since=2))
    assert stage.serve() == []

    stage.join(ticket("again", 3, since=1))
    assert stage.serve() == []
    assert stage.end("a") == ["again", "small"]


def test_who_needs_something_else_now_keeps_the_node():
    stage = Stage(("t1", 4))
    stage.runs(("a", "t1", 2))
    stage.join(ticket("large", 4, since=1), ticket("small", 1, since=2))
    assert stage.serve() == []

    renewed = ticket("large", 4, since=1, model="t4")
    stage.serving.renew(renewed)

    assert stage.serving.collects_on(renewed) == "t1"
    assert stage.serve() == []
    assert stage.end("a") == ["large"]


def test_the_next_one_collects_where_most_is_free_at_that_moment():
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


def test_nobody_is_served_who_joined_after_one_who_is_awaited():
    stage = Stage(("t", 2))
    stage.join(ticket("early", since=5), ticket("late", since=15))

    assert [it.person for it in stage.serving.serve(stage.cluster, 20.0, until=10.0)] == ["early"]
    assert [it.person for it in stage.serving.serve(stage.cluster, 20.0)] == ["late"]
