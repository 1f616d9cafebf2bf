"""Who is next in line, and the nodes on which servers in line collect what becomes free."""

import pytest

from gpuspawner.line.order import MARGIN_SECONDS, PART, PASSED_SECONDS, KeptNodes
from tests.simulation.cluster import Cluster, ticket
from tests.unit.makers.machines import MEMORY, Machines, asks
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


NOW = 100.0


def cluster(**nodes):
    made = Cluster((name, "t4", gpus) for name, gpus in nodes.items())
    made.now = NOW
    return made


def machine(gpus, memory):
    """One node with 8 GPUs and 1024 GiB, so much of which is in use."""
    made = Machines(1)
    made.promise(asks("runs", gpus, memory), frozenset())
    return made


def collecting(room, *tickets, part=1.0):
    made = KeptNodes(part)
    for it in tickets:
        assert made.collects(it, room, NOW)
    return made


def test_a_server_collects_where_it_starts_first_by_known_ends():
    room = cluster(never=4, late=4, soon=4, now=4)
    for node, ends in (("never", None), ("late", 900.0), ("soon", 60.0)):
        room.start(ticket(f"on-{node}", 4, lifetime=ends), node)
    them = [ticket(it, 4) for it in "abcd"]
    found = collecting(room, *them)

    assert [found.node(it.key) for it in them] == ["now", "soon", "late", "never"]


def test_without_known_ends_it_collects_where_most_of_what_it_needs_is_free():
    room = cluster(a=4, b=4, c=4)
    for node, gpus in (("a", 1), ("b", 3), ("c", 2)):
        room.start(ticket(f"on-{node}", gpus), node)
    them = [ticket(it, 4) for it in "xyz"]
    found = collecting(room, *them)

    assert [found.node(it.key) for it in them] == ["a", "c", "b"]


@pytest.mark.parametrize(("part", "most"), [(0.0, 1), (0.25, 2), (0.5, 4), (1.0, 8)])
def test_a_part_of_the_nodes_is_collected_on_at_a_time_or_one(part, most):
    room = cluster(**{f"n{it}": 4 for it in range(8)}, small=1)
    found = KeptNodes(part)
    them = [ticket(f"p{it}", 4) for it in range(9)]

    assert [it for it in them if found.collects(it, room, NOW)] == them[:most]
    found.release(them[0].key)
    assert found.collects(them[-1], room, NOW)


def test_only_the_nodes_count_that_the_server_itself_could_use():
    room = cluster(large=8, small=2)
    found = collecting(room, ticket("two", 2), part=0.0)
    assert found.node(("hub", "two")) == "large"
    assert not found.collects(ticket("eight", 8), room, NOW)

    other = collecting(room, ticket("eight", 8), part=0.0)
    assert not other.collects(ticket("two", 2), room, NOW)


def test_who_needs_one_gpu_collects_only_after_others_have_passed_for_long():
    room, found = cluster(a=1), KeptNodes()
    one = ticket("one", since=NOW)

    assert not found.collects(one, room, NOW + PASSED_SECONDS - 1)
    assert found.collects(one, room, NOW + PASSED_SECONDS)
    assert not found.collects(ticket("new", since=NOW + PASSED_SECONDS), room, NOW)


def test_whatever_a_server_needs_it_collects_after_that_time():
    one = asks("no-gpu", 0, 9, NOW - PASSED_SECONDS)
    assert collecting(machine(0, 1024), one).node(one.key)


def test_nobody_collects_who_can_start_nowhere():
    room = cluster(a=2)
    assert not KeptNodes().collects(ticket("four", 4), room, NOW)


def test_a_node_is_kept_until_its_server_is_gone_or_cant_use_it():
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


def test_all_that_is_needed_has_to_be_free_not_most_of_one_resource():
    room = machine(8, 0)
    found = collecting(room, asks("a", 8, 1, 1))
    assert not found.leaves_room(asks("b", 1, 0, 2), "n0", room, NOW)


def test_a_server_fits_beside_one_that_collects_if_enough_is_left():
    room = cluster(a=8)
    room.start(ticket("runs", 2), "a")
    found = collecting(room, ticket("x", 4, 1))

    assert found.leaves_room(ticket("y", 2, 2), "a", room, NOW)
    assert not found.leaves_room(ticket("y", 4, 2), "a", room, NOW)


def test_who_is_ahead_may_start_where_somebody_behind_collects():
    room = cluster(a=4)
    found = collecting(room, ticket("x", 4, 2))

    assert found.leaves_room(ticket("ahead", 1, 1), "a", room, NOW)
    assert found.leaves_room(ticket("x", 4, 2), "a", room, NOW)
    assert not found.leaves_room(ticket("behind", 1, 3), "a", room, NOW)


def test_what_a_newcomer_doesnt_request_doesnt_matter():
    room = machine(8, 0)
    found = collecting(room, asks("x", 8, 1000, 1))

    assert found.leaves_room(asks("y", 0, 24, 2), "n0", room, NOW)
    assert not found.leaves_room(asks("y", 0, 25, 2), "n0", room, NOW)
    assert not found.leaves_room(asks("y", 1, 1, 2), "n0", room, NOW)


def test_who_needs_nothing_of_a_resource_fits_where_more_than_all_is_in_use():
    room = machine(0, 1024)
    room.servers["hub", "host"] = "n0", {MEMORY: 2}
    found = collecting(room, asks("ahead", 2, 0, 1))

    assert found.leaves_room(asks("behind", 1, 0, 2), "n0", room, NOW)
    assert not found.leaves_room(asks("behind", 1, 1, 2), "n0", room, NOW)


@pytest.mark.parametrize(
    ("running", "lifetime", "is_in_time"),
    [
        ([(2, 900.0)], 900 - MARGIN_SECONDS, True),
        ([(2, 900.0)], 901 - MARGIN_SECONDS, False),
        ([(2, 900.0)], None, False),
        ([(1, 600.0), (1, None)], 1.0, False),
        ([], 1.0, False),
    ],
    ids=["just-in-time", "too-late", "no-end", "nobody-knows-the-start-ahead", "starts-now"],
)
def test_a_server_passes_if_it_ends_before_the_one_that_collects_can_start(
    running, lifetime, is_in_time
):
    room = cluster(a=4)
    for number, (gpus, ends) in enumerate(running):
        room.start(ticket(f"runs-{number}", gpus, lifetime=ends), "a")
    found = collecting(room, ticket("x", 4, 1))

    assert found.leaves_room(ticket("y", 2, 2, lifetime=lifetime), "a", room, NOW) is is_in_time
