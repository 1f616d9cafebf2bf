"""The line: tickets in their order."""

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner.line.tickets import Line, Ticket
from tests.simulation.cluster import Needs, ticket

NOW = 1000.0


def line(*tickets):
    made = Line()
    for it in tickets:
        made.join(it)
    return made


def present(made):
    """Return who may be called, by lane."""
    return [[it.person for it in lane.present] for lane in made.lanes.values()]


def ahead(made, of, *beside):
    near = frozenset({"n"})
    return made.ahead_of(
        of, NOW, lambda it: near if it is of or it.needs in beside else frozenset(), object()
    )


NEEDS = st.integers(1, 4)
NODES = st.frozensets(st.sampled_from("xyz"))
CROWD = st.lists(
    st.tuples(st.sampled_from("abc"), NEEDS, st.integers(0, 9), st.sampled_from((0.5, 1.0, 2.0))),
    min_size=1,
    max_size=12,
)


SAME = 5 * [frozenset("x")]


@example([("a", 1, 0, 0.5), ("b", 1, 8, 1.0), ("c", 1, 6, 0.5)], SAME, SAME).via("equal waits")
@given(CROWD, st.lists(NODES, min_size=5, max_size=5), st.lists(NODES, min_size=5, max_size=5))
def test_those_are_ahead_who_came_earlier_and_wait_for_the_same_nodes(crowd, before, after):
    """Also once nodes have changed, and somebody has left."""

    def possible(it):
        return nodes[it.needs.gpus]

    def are_ahead(me):
        mine = possible(me)
        beside = (it for it in made if it.needs == me.needs or mine & possible(it))
        first = [it.person for it in beside if it.precedence(NOW) < me.precedence(NOW)]
        return sum(it != me.person for it in first)

    made = Line()
    for number, (person, gpus, since, weight) in enumerate(crowd):
        one = ticket(f"p{number:02}", gpus, since=100 * since + number / 16, weight=weight)
        made.join(replace(one, person=person))
    for nodes in (before, after):
        for _ in range(2):
            for me in made:
                assert made.ahead_of(me, NOW, possible, nodes is after) == are_ahead(me)
            made.leave(("hub", f"p{len(made) - 1:02}"))


def test_who_waits_for_the_same_is_in_one_lane_in_the_order_of_arrival():
    made = line(ticket("c", since=3), ticket("a", since=1), ticket("x", 2), ticket("b", since=2))

    assert present(made) == [["a", "b", "c"], ["x"]]
    assert len(made) == 4
    assert {it.person for it in made} == {"a", "b", "c", "x"}


def test_what_people_need_their_weight_and_their_lifetime_make_a_lane():
    made = line(
        ticket("a"), ticket("b", model="t4"), ticket("c", weight=2), ticket("d", lifetime=60)
    )

    assert present(made) == [["a"], ["b"], ["c"], ["d"]]


def test_whose_labels_make_a_difference_is_in_another_lane_and_ahead_even_so():
    first, last = replace(ticket("a", since=1), shape="a"), ticket("b", since=2)
    made = line(first, last)

    assert present(made) == [["a"], ["b"]]
    assert ahead(made, last) == 1


def test_a_server_that_joins_again_has_only_its_new_place():
    made = line(ticket("a", since=1), ticket("b", since=2), ticket("a", since=3))

    assert present(made) == [["b", "a"]]
    assert made.places_of("a") == 1
    assert len(made) == 2


def test_a_server_that_joins_again_for_something_else_leaves_its_lane():
    made = line(ticket("a", since=1), ticket("a", 4, since=2))

    assert present(made) == [["a"]]
    assert made.find(("hub", "a")) == ticket("a", 4, since=2)


def test_who_leaves_takes_no_place_of_one_who_came_at_the_same_time():
    for leaves, stays in (("a", "b"), ("b", "a")):
        made = line(ticket("a", since=1), ticket("b", since=1))
        made.leave(("hub", leaves))
        assert present(made) == [[stays]]

        made.join(ticket(leaves, since=1))
        made.hold_back(("hub", leaves))
        assert present(made) == [[stays]]
        assert ahead(made, ticket("b", since=1)) == 1


def test_who_leaves_leaves_nothing_behind():
    made = line(ticket("a"), ticket("b", 4))
    made.hold_back(("hub", "b"))

    for _ in range(2):
        made.leave(("hub", "b"))

    assert made.find(("hub", "b")) is None
    assert not made.is_held_back(("hub", "b"))
    assert made.places_of("b") == 0
    assert present(made) == [["a"]]


def test_who_is_away_isnt_called_and_comes_back_to_the_same_place():
    made = line(ticket("a", since=1), ticket("b", since=2), ticket("c", since=3))
    made.hold_back(("hub", "b"))
    made.hold_back(("hub", "b"))

    assert made.is_held_back(("hub", "b"))
    assert present(made) == [["a", "c"]]
    assert ahead(made, ticket("c", since=3)) == 2  # their place counts

    made.let_back(("hub", "b"))
    made.let_back(("hub", "b"))
    assert not made.is_held_back(("hub", "b"))
    assert present(made) == [["a", "b", "c"]]


def test_nobody_steps_aside_or_back_who_isnt_in_line():
    made = line(ticket("a"))
    made.hold_back(("hub", "b"))
    made.let_back(("hub", "b"))

    assert not made.is_held_back(("hub", "b"))
    assert present(made) == [["a"]]


def test_a_lane_of_people_who_are_away_stays():
    made = line(ticket("a"))
    made.hold_back(("hub", "a"))

    [lane] = made.lanes.values()
    assert lane.held_back == {("hub", "a")}


def test_people_are_counted_with_all_their_servers():
    first = ticket("a")
    second = Ticket(("hub", "a--2"), "a", first.needs, first.requests, 0.0)
    made = line(first, second)

    assert made.places_of("a") == 2
    made.leave(second.key)
    assert made.places_of("a") == 1


def test_an_owners_other_servers_are_not_people_ahead_in_any_lane():
    me = ticket("a", since=4)
    own = (ticket("a-2", since=1), ticket("a-3", 4, since=3), ticket("a-4", since=5))
    others = (ticket("b", since=2), ticket("c", 4, since=2))
    made = line(me, *others, *(replace(it, person="a") for it in own))

    assert ahead(made, me) == 1
    assert ahead(made, me, Needs(4)) == 2
    assert ahead(made, others[0]) == 1
    made.leave(own[0].key)
    assert ahead(made, me) == 1


def test_only_lanes_that_wait_beside_a_ticket_are_ahead_of_it():
    made = line(ticket("a", since=1), ticket("b", 4, since=2), ticket("c", 8, since=3))
    last = ticket("d", since=4)  # who isn't in line can be told, too

    assert ahead(made, last) == 1
    assert ahead(made, last, Needs(4)) == 2
    assert ahead(made, last, Needs(4), Needs(8)) == 3


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from((0.5, 1.0, 2.0)), st.booleans()), max_size=12
    ),
    st.tuples(st.integers(0, 9), st.sampled_from((0.5, 1.0, 2.0))),
)
def test_as_many_are_ahead_as_have_a_smaller_precedence(others, own):
    made = Line()
    for number, (since, weight, is_away) in enumerate(others):
        # Weighted waiting times here are multiples of half a second, which "me" never waits for.
        made.join(ticket(f"p{number:02}", since=100 * since + number, weight=weight))
        if is_away:
            made.hold_back(("hub", f"p{number:02}"))
    me = ticket("me", since=100 * own[0] + 50.0625, weight=own[1])
    made.join(me)

    assert ahead(made, me) == sum(it.precedence(NOW) < me.precedence(NOW) for it in made)
