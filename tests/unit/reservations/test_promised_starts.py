"""N users, K GPUs: in no order of events is room promised to one pod and taken by another."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scheduling import contention
from gpuspawner.scheduling.contention import is_certain
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.storage import HOME, LOCAL, STORAGE_KINDS, WAIT, claim, volume
from tests.unit.makers.worlds import (
    NAMESPACE,
    Plain,
    World,
    is_unknown,
    pod,
    proposal,
    settle,
    waiting,
)

pytestmark = pytest.mark.usefixtures("clock")

Asking = dict[str, "asyncio.Task[Decision]"]


def decided(asking: Asking, kind: type) -> list[str]:
    done = {name: task.result() for name, task in asking.items() if task.done()}
    return [name for name, decision in done.items() if isinstance(decision, kind)]


class Promises(RuleBasedStateMachine):
    """Users ask, starts end in every way, the scheduler binds, pods end, and the view lags.

    The model is the true cluster beside the view: every pod with a reservation must be bound there
    in the end, unless its start, and with it the promise, ended before. When everything is over and
    in view, no reservation may be left.
    """

    @initialize(nodes=st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4))
    def begin(self, nodes: list[int]) -> None:
        self.loop = asyncio.new_event_loop()
        self.world = World(nodes)
        self.preflight = Preflight(self.world.view)
        self.asking: Asking = {}
        self.promised: set[str] = set()
        self.sent: set[str] = set()
        self.failed: set[str] = set()
        self.people = 0

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        async def and_settle() -> Any:
            result = await coroutine
            await settle()
            return result

        result = self.loop.run_until_complete(and_settle())
        for name, task in list(self.asking.items()):
            if task.done():
                del self.asking[name]
                if isinstance(task.result(), Start):
                    self.promised.add(name)
        return result

    @rule(gpus=st.sampled_from([1, 1, 2, 3]))
    def come(self, gpus: int) -> None:
        name, self.people = f"u{self.people}-{gpus}", self.people + 1

        async def asks() -> None:
            self.asking[name] = asyncio.ensure_future(
                self.preflight.reserving.take(proposal(name, gpus))
            )

        self.run(asks())

    @precondition(lambda self: self.promised)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.promised)))
        self.send_one(name)
        if data.draw(st.booleans()):  # the start ends at once, while the view lags
            self.end(name)

    def end(self, name: str) -> None:
        if not self.world.is_bound(name):
            self.failed.add(name)
        self.preflight.reservations.end((NAMESPACE, name))
        self.run(settle())

    def send_one(self, name: str) -> None:
        gpus = int(name.rpartition("-")[2])
        assert isinstance(self.run(self.preflight.reserving.move(proposal(name, gpus))), Start)
        self.promised.remove(name)
        self.preflight.reservations.send((NAMESPACE, name))
        self.world.create(name, gpus)
        self.sent.add(name)

    @precondition(lambda self: self.promised)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        """A hook fails, or a user presses Stop, before a pod was sent."""
        name = data.draw(st.sampled_from(sorted(self.promised)))
        self.promised.remove(name)
        self.preflight.reservations.end((NAMESPACE, name))
        self.run(settle())

    @precondition(lambda self: self.asking)
    @rule(data=st.data())
    def stop_waiting(self, data: st.DataObject) -> None:
        self.asking.pop(data.draw(st.sampled_from(sorted(self.asking)))).cancel()
        self.run(settle())

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def start_ends(self, data: st.DataObject) -> None:
        """The start succeeds or fails; the view may not have seen the pod."""
        self.end(data.draw(st.sampled_from(sorted(self.sent))))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def pod_ends(self, data: st.DataObject) -> None:
        """Its owner stops the pod, or others delete or evict it; the start is over before."""
        name = data.draw(st.sampled_from(sorted(self.sent)))
        self.sent.remove(name)
        self.world.delete(name)
        self.preflight.reservations.end((NAMESPACE, name))
        if data.draw(st.booleans()):
            self.preflight.reservations.see_out((NAMESPACE, name))
        self.run(settle())

    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        if bindable := self.world.bindable():
            self.world.bind(*data.draw(st.sampled_from(bindable)))

    @rule(events=st.integers(1, 4))
    def see(self, events: int) -> None:
        for _ in range(events):
            self.world.see(1)
            self.run(settle())

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        while self.asking:
            self.asking.popitem()[1].cancel()
        while self.promised:
            self.send_one(min(self.promised))
        while bindable := self.world.bindable():
            self.world.bind(*bindable[0])
        waiting = {pod.metadata.name for pod in self.world.truth.unbound_pods.values()}
        assert waiting <= self.failed
        for name in self.sent:
            self.preflight.reservations.end((NAMESPACE, name))
        while self.world.is_behind():
            self.see(1)
        assert len(self.preflight.reservations) == 0
        self.loop.close()


TestPromises = Promises.TestCase
TestPromises.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class Desk(Preflight):
    """What a hub promises in a world, step by step."""

    def __init__(self, world: World) -> None:
        super().__init__(world.view)

    async def promises(self, *asked: Proposal) -> None:
        """Promise room to each of these starts at once."""
        for it in asked:
            taken = asyncio.create_task(self.reserving.take(it))
            await settle()
            assert taken.done()
            assert isinstance(taken.result(), Start)

    async def keeps(self, *asked: Proposal) -> None:
        """Let these starts, which have room, send their pods as they are now."""
        for it in asked:
            assert isinstance(await self.reserving.move(it), Start)

    async def lets_wait(self, asked: Proposal) -> asyncio.Task[Decision]:
        return await waiting(self.reserving.take(asked))

    async def promises_then(self, other: asyncio.Task[Decision], ended: str) -> None:
        """Promise room to a start that has waited, once one has ended."""
        self.reservations.vacate((NAMESPACE, ended))
        assert isinstance(await other, Start)


async def test_a_pod_that_could_take_promised_room_waits() -> None:
    """One GPU fits on both nodes, two only on one: the view must first show where two GPUs go."""
    world = World([2, 1])
    desk = Desk(world)
    await desk.promises(proposal("two", 2))
    newcomer = await desk.lets_wait(proposal("one", 1))

    desk.reservations.send((NAMESPACE, "two"))
    world.create("two", 2, on="n0")
    world.see()
    assert isinstance(await newcomer, Start)


async def test_room_of_a_stopped_pod_is_promised_only_after_the_view_has_shown_the_pod() -> None:
    world = World([4])
    desk = Desk(world)
    await desk.promises(proposal("old", 2))
    desk.reservations.send((NAMESPACE, "old"))
    world.create("old", 2)
    world.bind("old", "n0")
    world.delete("old")
    desk.reservations.end((NAMESPACE, "old"))
    desk.reservations.see_out((NAMESPACE, "old"))

    newcomer = await desk.lets_wait(proposal("new", 3))

    world.see()
    assert isinstance(await newcomer, Start)
    await desk.keeps(proposal("new", 3))


# Claims and volumes


def claims(name: str, home: str, mode: str, class_: str) -> Proposal:
    """A server whose home directory will be made for it, or takes a volume that is there."""
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": home}}
    spec = {"accessModes": [mode], "storageClassName": class_}
    made: Plain = {"metadata": {"name": home, "namespace": NAMESPACE}, "spec": spec}
    return replace(proposal(name, volumes=[volume]), new_claims=(made,))


def alone(name: str, home: str = "") -> Proposal:
    """A server whose home directory, which will be made for it, only one pod may use at a time."""
    return claims(name, home or f"home-{name}", "ReadWriteOncePod", "wait")


def on_a_volume_that_is_there(name: str, home: str = "") -> Proposal:
    """A server whose new home directory takes a volume that an administrator has made."""
    return claims(name, home or f"home-{name}", "ReadWriteOnce", "local")


def unknown(name: str, home: str) -> Proposal:
    """As `alone`, but nobody knows the rules of its scheduler."""
    known = alone(name, home)
    spec: Any = known.pod["spec"]
    return replace(known, pod={**known.pod, "spec": {**spec, "schedulerName": "theirs"}})


def with_storage(gpus: int = 16) -> World:
    """Nodes with room for many servers, and a class that makes volumes."""
    world = World([gpus, gpus])
    for kind in STORAGE_KINDS:
        world.view.state.mark_known(kind)
    world.view.put("StorageClass", WAIT)
    return world


def with_volumes(*zones: str | None) -> World:
    """Two nodes with room for many servers, the first in zone a, and volumes in some zones."""
    world = with_storage()
    world.view.put("StorageClass", LOCAL)
    for number, zone in enumerate(zones):
        world.view.put("PersistentVolume", volume(f"disk-{number}", zone, class_="local"))
    return world


async def test_of_two_servers_whose_home_only_one_pod_may_use_only_one_is_promised_room() -> None:
    desk = Desk(with_storage())
    await desk.promises(alone("one", "shared"))

    other = await desk.lets_wait(alone("two", "shared"))

    await desk.promises_then(other, ended="one")


async def test_a_pending_pod_with_the_same_home_is_waited_for_too() -> None:
    world, one = with_storage(), alone("one", "shared")
    world.view.put("Pod", one.pod)
    world.view.put("PersistentVolumeClaim", one.new_claims[0])

    await Desk(world).lets_wait(alone("two", "shared"))


async def test_who_waits_for_a_home_keeps_nobody_else_from_free_room() -> None:
    desk = Desk(with_storage())
    await desk.promises(alone("one", "shared"))
    await desk.lets_wait(alone("two", "shared"))

    await desk.promises(alone("three"))


async def test_a_home_is_promised_to_one_server_also_if_its_verdict_is_unknown() -> None:
    desk = Desk(with_storage())
    assert is_unknown(await desk.reserving.take(unknown("one", "shared")))

    await desk.lets_wait(alone("two", "shared"))


async def test_servers_that_have_started_with_one_home_do_not_wait_for_each_other() -> None:
    desk = Desk(with_storage())
    for name in ("one", "two"):
        assert is_unknown(await desk.reserving.take(unknown(name, "shared")))

    # Admission names a scheduler that is known.
    await desk.keeps(alone("one", "shared"), alone("two", "shared"))


@pytest.mark.parametrize("zones", [(None, None), (None, "b", None)])
async def test_as_many_new_homes_are_promised_as_there_are_volumes_that_nobody_can_make(
    zones: tuple[str | None, ...],
) -> None:
    """A volume that none of the nodes reaches doesn't count."""
    desk = Desk(with_volumes(*zones))
    await desk.promises(on_a_volume_that_is_there("one"), on_a_volume_that_is_there("two"))

    third = await desk.lets_wait(on_a_volume_that_is_there("three"))

    await desk.promises(alone("other"))  # it waits for no volume, and takes free room
    await desk.promises_then(third, ended="one")


async def test_a_start_whose_volume_is_promised_to_nobody_else_keeps_it() -> None:
    """A later one with room elsewhere could take it as well."""
    desk = Desk(with_volumes(None))
    await desk.promises(on_a_volume_that_is_there("one"))

    await desk.keeps(on_a_volume_that_is_there("one"))
    await desk.lets_wait(on_a_volume_that_is_there("two"))


@pytest.mark.parametrize("class_", ["wait", "local"])
async def test_a_new_home_is_where_one_server_is_before_another_with_it_is_promised_room(
    class_: str,
) -> None:
    """The first may take it to a zone in which others take all that is left."""
    world = with_volumes("a", None)
    desk = Desk(world)
    one, two = (claims(it, "shared", "ReadWriteOnce", class_) for it in ("one", "two"))
    await desk.promises(one)

    other = await desk.lets_wait(two)
    await desk.promises(alone("three"))
    await desk.keeps(one)

    (claim,) = one.new_claims
    metadata = {**claim["metadata"], "annotations": {"volume.kubernetes.io/selected-node": "n1"}}
    world.view.put("PersistentVolumeClaim", {**claim, "metadata": metadata})
    assert isinstance(await other, Start)


async def test_no_more_volumes_are_promised_than_the_nodes_can_attach() -> None:
    """As a class starts on a large node: clouds attach about two dozen disks to a machine."""
    world = with_storage()
    world.view.put("Pod", pod("old", 1, on="n0", volumes=[HOME]))
    world.view.put("PersistentVolumeClaim", claim("claim-a", namespace=NAMESPACE))
    for name in ("n0", "n1"):
        csi = {"name": "csi", "nodeID": name, "allocatable": {"count": 2}}
        world.view.put("CSINode", {"metadata": {"name": name}, "spec": {"drivers": [csi]}})
    desk = Desk(world)

    await desk.promises(alone("one"), alone("two"), alone("three"), proposal("without-home"))
    four = await desk.lets_wait(alone("four"))

    await desk.promises_then(four, ended="one")


async def test_each_pod_takes_a_volume_for_its_own_ephemeral_claim() -> None:
    """Kubernetes claims it for the pod, as a disk of its own node."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    desk = Desk(with_volumes(None))
    await desk.promises(proposal("one", volumes=[scratch]))

    await desk.lets_wait(proposal("two", volumes=[scratch]))


async def test_two_servers_with_one_new_home_take_one_volume() -> None:
    desk = Desk(with_volumes(None))
    await desk.promises(*(on_a_volume_that_is_there(it, "shared") for it in ("one", "two")))

    await desk.lets_wait(on_a_volume_that_is_there("three"))


async def test_a_nominated_pod_keeps_a_volume_while_others_end_on_its_node() -> None:
    world, there = with_volumes(None), on_a_volume_that_is_there("one")
    world.view.put("PersistentVolumeClaim", there.new_claims[0])
    world.view.put("Pod", {**there.pod, "status": {"nominatedNodeName": "n1"}})

    await Desk(world).lets_wait(on_a_volume_that_is_there("two"))


async def test_claims_that_nobody_can_read_are_in_nobody_s_way() -> None:
    claim: Plain = {"metadata": {"name": "shared"}, "spec": {"accessModes": 5}}
    unread = replace(alone("one", "shared"), new_claims=(claim,))

    await Desk(with_storage()).promises(unread, alone("two", "shared"))


async def test_a_hundred_homes_for_one_pod_each_cost_one_look_at_the_others(monkeypatch) -> None:
    desk, looks = Desk(with_storage(100)), []
    people = [alone(f"u{number}") for number in range(100)]
    for one in people[1:]:
        assert isinstance(one.subject, Subject)
        desk.reservations.take(one.key, one.subject)

    def counted(*about: Any) -> bool:
        looks.append(about)
        return is_certain(*about)

    monkeypatch.setattr(contention, "is_certain", counted)

    await desk.promises(people[0])
    assert len(looks) == 1


SIZES = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 20), st.randoms())
def test_as_many_simultaneous_starts_succeed_as_there_are_gpus(nodes, people, dice) -> None:
    async def check() -> None:
        world = World(nodes)
        preflight = Preflight(world.view)
        asking: Asking = {
            f"u{i}": asyncio.create_task(preflight.reserving.take(proposal(f"u{i}")))
            for i in range(people)
        }
        await settle()
        started = decided(asking, Start)
        assert len(started) == min(people, sum(nodes))
        assert not decided(asking, Refuse)

        for name in started:
            preflight.reservations.send((NAMESPACE, name))
            world.create(name, 1)
        while bindable := world.bindable():
            world.bind(*dice.choice(bindable))
        world.see()
        await asyncio.gather(*asking.values())

        assert len(decided(asking, Refuse)) == max(0, people - sum(nodes))
        assert all(
            task.result().reason is Reason.BUSY
            for task in asking.values()
            if isinstance(task.result(), Refuse)
        )
        assert len(preflight.reservations) == 0

    with asyncio.Runner() as runner:
        runner.run(check())
