"""Whatever happens in whatever order, nobody is lost, served twice, or passed over for good."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gpuspawner.kube.meta import Key
from gpuspawner.line.line import Ticket
from tests.simulation.cluster import ticket
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
    def set_up(self, nodes: list[tuple[str, int]]) -> None:
        self.cluster = Witness((f"n{i}", model, gpus) for i, (model, gpus) in enumerate(nodes))
        self.line, self.serving = self.cluster.line, self.cluster.serving
        self.number = 0
        self.called: list[Ticket] = []
        self.left: set[Key] = set()
        self.joined: set[Key] = set()
        self.front: Ticket | None = None
        self.before: set[Key] = set()
        """Those that may run before `front`: since before it was the first, or from ahead of it."""

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for it in list(self.line):
            self.serving.step_back(it)
        self.serve()
        while self.cluster.servers:
            self.cluster.end(next(iter(self.cluster.servers)))
            self.serve()
        assert len(self.line) == 0, "somebody is never served"

    def serve(self) -> None:
        before = {it.key for it in self.line}
        called = self.serving.serve(self.cluster, self.cluster.now)
        assert len({it.key for it in called}) == len(called)
        assert {it.key for it in called} == before - {it.key for it in self.line}
        self.called += called
        self.cluster.check_holds()
        self._watch_the_front()
        if self.front is not None:  # who was ahead of the first may run before it
            now = self.serving.moment(self.cluster.now)
            ahead = self.front.precedence(now)
            self.before |= {it.key for it in called if it.precedence(now) < ahead}

    def _watch_the_front(self) -> None:
        here = [it for it in self.line if not self.line.is_away(it.key)]
        now = self.serving.moment(self.cluster.now)
        first = min(here, key=lambda it: it.precedence(now), default=None)
        if first is not self.front:
            self.front, self.before = first, set(self.cluster.servers)

    def waiting(self) -> list[Ticket]:
        return sorted(self.line, key=lambda it: it.key)

    @rule(data=st.data(), size=st.sampled_from(SIZES), model=st.sampled_from(("", *MODELS)))
    def join(self, data: st.DataObject, size: int, model: str) -> None:
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
    def leave(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from(self.waiting()))
        self.serving.leave(it)
        self.left.add(it.key)
        self.serve()

    @precondition(lambda self: len(self.line) > 0)
    @rule(data=st.data())
    def go_away_or_come_back(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from(self.waiting()))
        if self.line.is_away(it.key):
            self.serving.step_back(it)
        else:
            self.serving.step_aside(it)
        self.serve()

    @precondition(lambda self: len(self.cluster.servers) > 0)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.cluster.end(data.draw(st.sampled_from(sorted(self.cluster.servers))))
        self.before &= set(self.cluster.servers)
        self.serve()

    @rule(seconds=st.sampled_from((1.0, 60.0, 600.0)))
    def time_passes(self, seconds: float) -> None:
        self.cluster.now += seconds
        for it in list(self.cluster.servers.values()):
            if it.ends is not None and it.ends <= self.cluster.now:
                self.cluster.end(it.key)
        self.before &= set(self.cluster.servers)
        self.serve()

    @invariant()
    def nobody_is_lost_or_served_twice(self) -> None:
        called = [it.key for it in self.called]
        waiting = {it.key for it in self.line}
        assert len(set(called)) == len(called)
        assert self.joined == set(called) | waiting | self.left
        assert len(called) + len(waiting) + len(self.left) == len(self.joined)

    @invariant()
    def the_first_is_never_kept_waiting_while_there_is_room(self) -> None:
        if self.front is not None:
            assert not self.cluster.fitting(self.front)

    @invariant()
    def who_fits_but_waits_has_somebody_ahead_who_waits_for_the_same_nodes(self) -> None:
        now = self.serving.moment(self.cluster.now)
        here = [it for it in self.line if not self.line.is_away(it.key)]
        for it in here:
            fitting = set(self.cluster.fitting(it))
            assert not fitting or any(
                other.precedence(now) < it.precedence(now)
                and self.cluster.possible(other) & fitting
                for other in here
            )


class WithoutLifetimes(Played):
    """Nobody knows when a server ends."""

    @invariant()
    def the_first_is_served_once_all_that_ran_before_have_ended(self) -> None:
        if self.front is not None:
            assert self.before, "others got what the first waited for"


class InOrder(WithoutLifetimes):
    """Everybody wants the same: the order is that of arrival."""

    @rule()
    def join(self) -> None:  # type: ignore[override]
        self.number += 1
        made = ticket(f"p{self.number:03}", 1, float(self.number))
        self.joined.add(made.key)
        self.serving.join(made)
        self.serve()

    def go_away_or_come_back(self, data: st.DataObject) -> None:
        """Nobody goes away."""

    @invariant()
    def the_order_is_that_of_arrival(self) -> None:
        order = [it.since for it in self.called]
        assert order == sorted(order)


class WithLifetimesAndWeights(Played):
    """Some servers have to end, and some people's time counts more."""

    lifetimes = (None, 30.0, 500.0, 3600.0)
    weights = (1.0, 2.0, 0.5)


class WhileNodesGo(WithLifetimesAndWeights):
    """Nodes go away and come back, for example because somebody cordons them."""

    @rule(data=st.data())
    def a_node_goes_or_comes_back(self, data: st.DataObject) -> None:
        self.cluster.away ^= {data.draw(st.sampled_from(sorted(self.cluster.nodes)))}
        self.serve()

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.away.clear()
        super().teardown()


MACHINES = (WithoutLifetimes, InOrder, WithLifetimesAndWeights, WhileNodesGo)


@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_everybody_is_served_in_turn(machine: type[Played]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=40, stateful_step_count=40))


@pytest.mark.nightly(why="it takes minutes, and finds the faults of the short form more surely")
@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_for_long_everybody_is_served_in_turn(machine: type[Played]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=1000, stateful_step_count=60))
