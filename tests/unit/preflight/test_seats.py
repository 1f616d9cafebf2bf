"""N people, K GPUs: whatever the order of things, nobody is promised what another gets."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.preflight.judge import Judge
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.seats import Seats

from .worlds import NAMESPACE, StillView, World, ask, node, pod, settle

Asking = dict[str, "asyncio.Task[Decision]"]


def decided(asking: Asking, kind: type) -> list[str]:
    done = {name: task.result() for name, task in asking.items() if task.done()}
    return [name for name, decision in done.items() if isinstance(decision, kind)]


class Story:
    """People ask, hubs create or give up, the scheduler binds, pods end and the view lags."""

    def __init__(self, nodes: list[int], people: list[int], dice: random.Random) -> None:
        self.world = World(nodes)
        self.preflight = Preflight(self.world.view, patience=1000)
        self.asks = {f"u{i}": ask(f"u{i}", gpus) for i, gpus in enumerate(people)}
        self.to_ask = list(self.asks)
        self.asking: Asking = {}
        self.created: set[str] = set()
        self.dice = dice

    async def run(self) -> None:
        """Anything in any order; then all who hold a promise create, and all is bound."""
        steps = [self.come, self.create, self.bind, self.bind, self.see, self.give_up, self.end]
        for _ in range(12 * len(self.asks)):
            await self.dice.choice(steps)()
            await settle()
        while self.ready():
            await self.create()
        while self.world.bindable():
            await self.bind()
        for task in self.asking.values():
            task.cancel()

    def ready(self) -> list[str]:
        return [name for name in decided(self.asking, Start) if name not in self.created]

    async def come(self) -> None:
        if self.to_ask:
            name = self.to_ask.pop(0)
            self.asking[name] = asyncio.create_task(self.preflight.begin(self.asks[name]))

    async def create(self) -> None:
        if ready := self.ready():
            name = self.dice.choice(ready)
            self.created.add(name)
            assert isinstance(await self.preflight.confirm(self.asks[name]), Start)
            self.world.create(name, self.asks[name].grant.gpus)

    async def give_up(self) -> None:
        if (ready := self.ready()) and self.dice.random() < 0.3:
            name = self.dice.choice(ready)
            self.created.add(name)
            self.preflight.release(NAMESPACE, name)

    async def bind(self) -> None:
        if bindable := self.world.bindable():
            self.world.bind(*self.dice.choice(bindable))

    async def end(self) -> None:
        """A start is over, and its seat with it, once its pod was seen to run."""
        seen = self.world.view.state.pods
        running = [n for n in self.created if f"{NAMESPACE}/{n}" in seen and self.world.is_bound(n)]
        if running and self.dice.random() < 0.3:
            name = self.dice.choice(running)
            self.preflight.release(NAMESPACE, name)
            self.world.delete(name)

    async def see(self) -> None:
        self.world.see(self.dice.randrange(4))


SIZES = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4),
    st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=8),
    st.randoms(),
)
def test_everybody_who_was_promised_a_place_is_bound(
    nodes: list[int], people: list[int], dice: random.Random
) -> None:
    story = Story(nodes, people, dice)

    asyncio.run(story.run())

    assert list(story.world.truth.unbound_pods) == []
    assert len(story.preflight.seats) <= len(story.world.truth.pods)


async def test_a_newcomer_that_could_take_the_place_of_somebody_promised_waits() -> None:
    """One GPU fits on either node, two on one of them only: where it goes must be seen first."""
    world = World([2, 1])
    preflight = Preflight(world.view, patience=1000)
    assert isinstance(await preflight.begin(ask("two", 2)), Start)
    newcomer = asyncio.create_task(preflight.begin(ask("one", 1)))
    await settle()
    assert not newcomer.done()

    world.create("two", 2, on="n0")
    world.see()
    assert isinstance(await newcomer, Start)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 20), st.randoms())
def test_of_many_who_ask_for_one_at_once_exactly_as_many_start_as_there_are(
    nodes: list[int], people: int, dice: random.Random
) -> None:
    async def check() -> None:
        world = World(nodes)
        preflight = Preflight(world.view, patience=1000)
        asking: Asking = {
            f"u{i}": asyncio.create_task(preflight.begin(ask(f"u{i}"))) for i in range(people)
        }
        await settle()
        started = decided(asking, Start)
        assert len(started) == min(people, sum(nodes))
        assert not decided(asking, Refuse)

        for name in started:
            world.create(name, 1)
        while bindable := world.bindable():
            world.bind(*dice.choice(bindable))
        world.see()
        await asyncio.wait_for(asyncio.gather(*asking.values()), 5)

        assert len(decided(asking, Refuse)) == max(0, people - sum(nodes))
        assert all(
            task.result().reason is Reason.BUSY
            for task in asking.values()
            if isinstance(task.result(), Refuse)
        )
        assert len(preflight.seats) == 0

    asyncio.run(check())


def seats_on(view: StillView) -> Seats:
    return Seats(view.state, Judge(view.state))


KEY = (NAMESPACE, "a")


def take(seats: Seats, name: str = "a", gpus: int = 1) -> None:
    subject = ask(name, gpus).subject
    assert not hasattr(subject, "problem")
    seats.take((NAMESPACE, name), subject)  # type: ignore[arg-type]


def test_a_seat_ends_when_the_view_shows_its_pod_bound() -> None:
    view = StillView(("Node", node("n", 1)))
    seats = seats_on(view)
    take(seats)
    view.put("Pod", pod("a"))
    assert len(seats) == 1

    view.put("Pod", pod("a", on="n"))
    assert len(seats) == 0


def test_an_older_pod_of_the_same_name_does_not_end_a_seat() -> None:
    view = StillView(("Node", node("n", 2)), ("Pod", pod("a", on="n")))
    seats = seats_on(view)
    take(seats)
    assert len(seats) == 1

    old = pod("a", on="n")
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"  # type: ignore[index]
    view.put("Pod", old)
    assert len(seats) == 1
    view.remove_pod("a")
    assert len(seats) == 1

    view.put("Pod", pod("a", on="n"))
    assert len(seats) == 0


def test_a_seat_ends_after_its_lifetime() -> None:
    view = StillView(("Node", node("n", 1)))
    seats = Seats(view.state, Judge(view.state), lifetime=0.0)
    take(seats)

    assert len(seats) == 0


def test_only_the_attempt_that_is_named_is_released() -> None:
    view = StillView(("Node", node("n", 1)))
    seats = seats_on(view)
    take(seats)
    first = seats.find(KEY)
    take(seats)
    assert first is not None

    assert not seats.release(KEY, first.attempt)
    assert len(seats) == 1
    assert seats.release(KEY)
    assert not seats.release(KEY)


def test_a_preempting_pod_keeps_its_seat_until_it_has_a_node_in_view() -> None:
    placeholder = pod("placeholder", on="n", priority=-10)
    view = StillView(("Node", node("n", 1)), ("Pod", placeholder))
    seats = seats_on(view)
    take(seats)
    view.put("Pod", pod("a"))
    assert len(seats) == 1

    view.put("Pod", {**pod("a"), "status": {"nominatedNodeName": "n"}})
    assert len(seats) == 0


def test_what_nobody_can_judge_keeps_its_seat_until_it_is_seen() -> None:
    view = StillView(("Node", node("n", 1)))
    seats = seats_on(view)
    gated = ask("a", schedulerName="volcano").subject
    seats.take(KEY, gated)  # type: ignore[arg-type]
    assert len(seats) == 1

    view.put("Pod", pod("a", schedulerName="volcano"))
    assert len(seats) == 0
