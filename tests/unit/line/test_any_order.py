"""Whatever happens in whatever order, nobody is lost, served twice, or passed over for good."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gpuspawner.line.order import PASSED_SECONDS, Serving
from gpuspawner.line.tickets import Line
from tests.simulation.cluster import Cluster, ticket
from tests.unit.makers.machines import Machines, asks
from tests.unit.makers.witness import Witness

MODELS = ("t4", "a100")
SIZES = (1, 2, 4, 8)


class Played(RuleBasedStateMachine):
    """People who join, leave, go away and come back; servers that end; a clock."""

    lifetimes: tuple[float | None, ...] = (None,)
    weights: tuple[float, ...] = (1.0,)

    @initialize(
        nodes=st.lists(
            st.tuples(st.sampled_from(MODELS), st.sampled_from(SIZES)), min_size=1, max_size=5
        )
    )
    def set_up(self, nodes):
        self.cluster = Witness((f"n{i}", model, gpus) for i, (model, gpus) in enumerate(nodes))
        self.line, self.serving = self.cluster.line, self.cluster.serving
        self.number = 0
        self.called = []
        self.left = set()
        self.joined = set()
        self.front = None, None
        """The first in line, and the node on which it collects."""
        self.before = set()
        """Those that may run on that node: since it became the first or began to collect there, or
        from ahead of it."""

    def teardown(self):
        if not hasattr(self, "cluster"):
            return
        for it in list(self.line):
            self.serving.let_back(it)
        self.serve()
        while self.cluster.servers:
            self.cluster.end(next(iter(self.cluster.servers)))
            self.serve()
        assert len(self.line) == 0, "somebody is never served"

    def serve(self):
        before = {it.key for it in self.line}
        called = self.serving.serve(self.cluster, self.cluster.now)
        assert len({it.key for it in called}) == len(called)
        assert {it.key for it in called} == before - {it.key for it in self.line}
        self.called += called
        self.cluster.check_who_collects()
        self._watch_the_front()
        first, now = self.front[0], self.cluster.now
        if first is not None:
            place = first.precedence(now)
            self.before |= {it.key for it in called if it.precedence(now) < place}

    def _watch_the_front(self):
        here = [it for it in self.line if not self.line.is_held_back(it.key)]
        first = min(here, key=lambda it: it.precedence(self.cluster.now), default=None)
        front = first, self.serving.collects_on(first) if first else None
        if front != self.front:
            self.front, self.before = front, self.on_its_node(front[1])

    def on_its_node(self, node):
        return set() if node is None else set(self.cluster.nodes[node].servers)

    def waiting(self):
        return sorted(self.line, key=lambda it: it.key)

    @rule(data=st.data(), size=st.sampled_from(SIZES), model=st.sampled_from(("", *MODELS)))
    def join(self, data, size, model):
        self.number += 1
        made = ticket(
            f"p{self.number:03}",
            size,
            self.cluster.now - data.draw(st.sampled_from((0.0, 0.0, 45.0))),
            model=model,
            weight=data.draw(st.sampled_from(self.weights)),
            lifetime=data.draw(st.sampled_from(self.lifetimes)),
        )
        if not self.cluster.possible(made):
            return
        self.joined.add(made.key)
        self.serving.join(made)
        self.serve()

    @precondition(lambda self: len(self.line) > 0)
    @rule(data=st.data())
    def leave(self, data):
        it = data.draw(st.sampled_from(self.waiting()))
        self.serving.leave(it)
        self.left.add(it.key)
        self.serve()

    @precondition(lambda self: len(self.line) > 0)
    @rule(data=st.data())
    def go_away_or_come_back(self, data):
        it = data.draw(st.sampled_from(self.waiting()))
        if self.line.is_held_back(it.key):
            self.serving.let_back(it)
        else:
            self.serving.hold_back(it)
        self.serve()

    @precondition(lambda self: len(self.cluster.servers) > 0)
    @rule(data=st.data())
    def end(self, data):
        self.cluster.end(data.draw(st.sampled_from(sorted(self.cluster.servers))))
        self.serve()

    @rule(seconds=st.sampled_from((1.0, 60.0, 600.0, PASSED_SECONDS)))
    def time_passes(self, seconds):
        self.cluster.now += seconds
        for it in list(self.cluster.servers.values()):
            if it.ends is not None and it.ends <= self.cluster.now:
                self.cluster.end(it.key)
        self.serve()

    @invariant()
    def nobody_is_lost_or_served_twice(self):
        called = [it.key for it in self.called]
        waiting = {it.key for it in self.line}
        assert len(set(called)) == len(called)
        assert self.joined == set(called) | waiting | self.left
        assert len(called) + len(waiting) + len(self.left) == len(self.joined)

    @invariant()
    def the_first_is_never_kept_waiting_while_there_is_room(self):
        first, _ = self.front
        if first is not None:
            assert not self.cluster.fitting(first)

    @invariant()
    def who_fits_but_waits_fits_only_where_somebody_ahead_collects(self):
        now, them = self.cluster.now, self.cluster.who_collects()
        for it in self.line:
            if not self.line.is_held_back(it.key):
                for node in self.cluster.fitting(it):
                    assert them[node].precedence(now) < it.precedence(now)


class WithoutLifetimes(Played):
    """Nobody knows when a server ends."""

    @invariant()
    def nobody_takes_what_the_first_collects(self):
        _, node = self.front
        assert self.on_its_node(node) <= self.before


class InOrder(WithoutLifetimes):
    """Everybody wants the same: the order is that of arrival."""

    @rule()
    def join(self):
        self.number += 1
        made = ticket(f"p{self.number:03}", 1, float(self.number))
        self.joined.add(made.key)
        self.serving.join(made)
        self.serve()

    def go_away_or_come_back(self, data):
        """Nobody goes away."""

    @invariant()
    def the_order_is_that_of_arrival(self):
        order = [it.since for it in self.called]
        assert order == sorted(order)


class WithLifetimesAndWeights(Played):
    """Some servers have to end, and some people's time counts more."""

    lifetimes = (None, 30.0, 500.0, 3600.0)
    weights = (1.0, 2.0, 0.5)


class WhileNodesGo(WithLifetimesAndWeights):
    """Nodes go away and come back, for example because somebody cordons them."""

    @rule(data=st.data())
    def a_node_goes_or_comes_back(self, data):
        self.cluster.away ^= {data.draw(st.sampled_from(sorted(self.cluster.nodes)))}
        self.serve()

    def teardown(self):
        if hasattr(self, "cluster"):
            self.cluster.away.clear()
        super().teardown()


MACHINES = (WithoutLifetimes, InOrder, WithLifetimesAndWeights, WhileNodesGo)


@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_everybody_is_served_in_turn(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=40))


@pytest.mark.nightly(why="it takes minutes, and finds the faults of the short form more surely")
@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_for_long_everybody_is_served_in_turn(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=1000, stateful_step_count=60))


STEP, STEPS = 600.0, 12
"""How often servers come and end in the crowd, in seconds; how many steps each runs."""


@given(
    gpus=st.integers(0, 8),
    memory=st.integers(1, 1024),
    crowd=st.tuples(st.integers(0, 3), st.integers(1, 200)),
    nodes=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_nobody_is_passed_for_ever_whatever_they_need(gpus, memory, crowd, nodes):
    """A crowd of small servers comes without end, and fills each gap at once."""
    room, line = Machines(nodes), Line()
    serving = Serving(line)
    ends = {}
    steps = int(PASSED_SECONDS / STEP) + STEPS
    for step in range(STEPS + steps + 1):
        for key in [it for it, end in ends.items() if end == step]:
            del room.servers[key], ends[key]
        if step == STEPS:
            serving.join(asks("whoever", gpus, memory, STEP * step))
        for it in range(8 * nodes):  # so many that all are never served
            serving.join(asks(f"crowd-{step:03}-{it:02}", *crowd, STEP * step + it / 100))
        for it in serving.serve(room, STEP * (step + 1)):
            ends[it.key] = step + 1 + len(ends) % STEPS
        for it in list(line):
            if it.person != "whoever":
                serving.leave(it)  # the crowd is impatient: others come instead

    assert line.find(("hub", "whoever")) is None


@given(
    people=st.lists(
        st.tuples(
            st.integers(1, 9999), st.sampled_from((0.5, 1.0, 2.0, 4.0)), st.sampled_from(SIZES)
        ),
        max_size=12,
        unique_by=lambda it: it[0] * it[1],
    ),
    running=st.lists(st.integers(1, 8), min_size=1, max_size=4),
)
def test_weights_only_scale_the_time_waited(people, running):
    """Who waits with a weight of 2 is treated as if they had waited for twice as long."""

    def called(*, weighted):
        cluster = Cluster((f"n{it}", "t4", 8) for it in range(len(running)))
        for node, gpus in zip(cluster.nodes, running, strict=True):
            cluster.start(ticket(f"on-{node}", gpus), node)
        serving = Serving(Line())
        now, tickets = 50_000.0, []
        for number, (waited, weight, gpus) in enumerate(people):
            since = now - (waited if weighted else waited * weight)
            made = ticket(f"p{number}", gpus, since, weight=weight if weighted else 1.0)
            tickets.append(made)
            serving.join(made)
        found = [it.person for it in serving.serve(cluster, now)]
        return found, [serving.collects_on(it) for it in tickets]

    assert called(weighted=True) == called(weighted=False)
