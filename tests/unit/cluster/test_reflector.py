"""A reflector processes signals without blocking the hub's other work."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import weakref
from typing import Any

import msgspec
import pytest

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.decoding import Change
from gpuspawner.cluster.health import Live, health_of, is_broken
from gpuspawner.cluster.kinds import PODS, ObjectKind
from gpuspawner.cluster.list_watch import Confirmed, ListEnd, Lost, Page, Signal
from gpuspawner.cluster.reflector import Reflector
from gpuspawner.kube.objects import decode
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.scripted import obj

pytestmark = pytest.mark.each_python


class Scripted:
    """A watcher that yields a test's signals, then ends."""

    def __init__(self, *signals: Signal) -> None:
        self._signals = signals

    async def signals(self):
        for signal in self._signals:
            yield signal


def pods(count: int) -> list[msgspec.Raw]:
    return [msgspec.Raw(json.dumps(obj(f"p{i}", namespace="x")).encode()) for i in range(count)]


@pytest.mark.parametrize(
    "signals",
    [
        [Page(pods(200), first=True), ListEnd()],
        [Confirmed([Change("ADDED", decode("Pod", raw)) for raw in pods(200)])],
    ],
    ids=["a page", "a burst of changes"],
)
async def test_other_work_goes_on_while_many_objects_are_processed(signals, monkeypatch) -> None:
    for longest in ("_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(f"gpuspawner.cluster.background.{longest}", 0.0)
    state = ClusterState()
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(other_work())
    await Reflector(PODS, state, lambda: None).run(Scripted(*signals))  # type: ignore[arg-type]
    other.cancel()

    assert len(state.unbound_pods) == 200
    assert turns > 150


async def test_other_work_goes_on_while_a_new_list_replaces_many_objects(monkeypatch) -> None:
    for longest in ("_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(f"gpuspawner.cluster.background.{longest}", 0.0)
    state = ClusterState()
    reflector = Reflector(PODS, state, lambda: None)
    await reflector.run(Scripted(Page(pods(200), first=True), ListEnd()))  # type: ignore[arg-type]
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(other_work())
    await reflector.run(Scripted(Page(pods(1), first=True), ListEnd()))  # type: ignore[arg-type]
    other.cancel()

    assert len(state.unbound_pods) == 1
    assert turns > 350  # it copies 200 keys and drops 199 objects


async def test_the_objects_of_two_kinds_are_not_processed_in_the_same_round(monkeypatch) -> None:
    for longest in ("_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(f"gpuspawner.cluster.background.{longest}", 0.0)
    shared, order = Background(), []

    class Recorded(ClusterState):
        def put(self, thing: Any) -> None:
            order.append(rounds)
            super().put(thing)

    rounds = 0

    async def other_work() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    other = asyncio.create_task(other_work())
    await asyncio.gather(
        *(
            Reflector(PODS, Recorded(), lambda: None, shared).run(
                Scripted(Page(pods(20), first=True), ListEnd())  # type: ignore[arg-type]
            )
            for _ in range(2)
        )
    )
    other.cancel()

    assert len(order) == len(set(order)) == 40


async def test_a_reflector_notifies_once_a_signal_not_once_an_object() -> None:
    notified: list[int] = []
    state = ClusterState()
    reflector = Reflector(PODS, state, lambda: notified.append(len(state.unbound_pods)))

    await reflector.run(Scripted(Page(pods(3), first=True), ListEnd()))  # type: ignore[arg-type]

    assert notified == [3, 3]


async def test_a_gap_ends_with_the_list_that_follows_it() -> None:
    reflector = Reflector(PODS, ClusterState(), lambda: None)
    listing: list[Signal] = [Page(pods(1), first=True), ListEnd()]
    gone = Lost(RequestError("gone", 410), gap=True)

    await reflector.run(Scripted(*listing, gone))  # type: ignore[arg-type]
    assert reflector.gap
    await reflector.run(Scripted(*listing))  # type: ignore[arg-type]
    assert not reflector.gap
    assert reflector.error is None


BROKEN = Lost(RequestError("broken"), gap=False)
RESUMED, CAUGHT_UP = Confirmed([], caught_up=False), Confirmed([])


@pytest.mark.parametrize(
    ("steps", "is_live"),
    [
        ([(50, BROKEN)], True),
        ([(50, BROKEN), (9, RESUMED)], True),
        ([(50, BROKEN), (9, RESUMED), (2, BROKEN), (9, RESUMED)], True),
        ([(50, BROKEN), *3 * [(9, RESUMED), (2, BROKEN)]], False),
        ([(50, BROKEN), *3 * [(9, RESUMED), (2, CAUGHT_UP), (2, BROKEN)]], True),
        ([(50, BROKEN), *3 * [(9, RESUMED), (2, BROKEN)], (3, CAUGHT_UP)], True),
        ([(50, BROKEN), (6, BROKEN), (5, None)], False),
        ([(50, BROKEN), (11, RESUMED)], False),
        ([(50, BROKEN), (11, RESUMED), (2, BROKEN), (1, RESUMED)], False),
        ([(50, BROKEN), (11, RESUMED), (3, CAUGHT_UP)], True),
        ([(50, BROKEN), (11, CAUGHT_UP), (50, BROKEN)], True),
        ([(75, BROKEN), (1, RESUMED)], False),
    ],
    ids=[
        "it has just broken",
        "it is back in time",
        "it is back in time again and again",
        "it breaks again and again before all that was missed has come",
        "it breaks again and again after that",
        "all has come although it broke again and again",
        "it stays broken",
        "it comes back late",
        "it comes back late and breaks again",
        "all that was missed has come",
        "it breaks after that",
        "it was dead for long before it broke",
    ],
)
async def test_what_was_known_before_a_broken_watch_counts_if(steps, is_live, monkeypatch) -> None:
    """A quiet cluster confirms it once a minute, and a new watch begins before it tells changes."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reflector = Reflector(PODS, ClusterState(), lambda: None)
    await reflector.run(Scripted(Page([], first=True), ListEnd()))  # type: ignore[arg-type]
    for seconds, signal in steps:
        now += seconds
        await reflector.run(Scripted(*filter(None, [signal])))  # type: ignore[arg-type]

    assert isinstance(health_of([reflector], since=now, silence=75.0), Live) == is_live


async def test_an_api_that_was_absent_for_long_is_not_broken_by_its_first_failure(
    monkeypatch,
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    classes = ObjectKind("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses", required=False)
    reflector = Reflector(classes, ClusterState(), lambda: None)
    absent = Lost(RequestError("not found", 404), gap=True)
    fails = Lost(RequestError("etcd is gone", 500), gap=True)
    seen = []
    for seconds, signal in [(0, absent), (80, absent), (80, fails), (5, fails), (6, fails)]:
        now += seconds
        await reflector.run(Scripted(signal))  # type: ignore[arg-type]
        seen.append(is_broken(reflector))

    assert seen == [False, False, False, False, True]


async def test_garbage_of_others_does_not_grow_while_pages_replace_objects() -> None:
    """Python doesn't collect then: it compares how many objects are made and freed."""

    class Request:
        def __init__(self) -> None:
            self.itself = self

    threshold = gc.get_threshold()
    gc.set_threshold(10**9)
    try:
        garbage = weakref.ref(Request())
        page = Page(pods(1), first=True)
        await Reflector(PODS, ClusterState(), lambda: None).run(Scripted(page))  # type: ignore[arg-type]
    finally:
        gc.set_threshold(*threshold)

    assert garbage() is None


@pytest.mark.parametrize(
    ("encoded", "said"),
    [
        (b'{"metadata":{"name":"o","namespace":"x"},"spec":5}', "(Pod x/o: Expected"),
        (b'{"metadata":{"namespace":"x"}}', "(Pod x/?: a Pod without metadata.name)"),
        (b"5", "(Pod ?: Expected"),
        (
            b'{"metadata":{"name":"a\\nERROR\\u001b[2Jb","namespace":"%s"},"spec":5}'
            % (b"x" * 9999),
            f"(Pod {'x' * 252}…/a ERROR [2Jb: Expected",
        ),
    ],
    ids=["all", "no name", "nothing", "hostile"],
)
async def test_the_log_names_the_object_that_cannot_be_understood(
    encoded: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    page = Page([msgspec.Raw(encoded)] * 2, first=True)

    await Reflector(PODS, ClusterState(), lambda: None).run(Scripted(page, ListEnd()))

    [line] = [it.getMessage() for it in caplog.records if "cannot be understood" in it.getMessage()]
    assert said in line
    assert line.isprintable()
    assert len(line) < 800
