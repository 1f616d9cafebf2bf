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


async def take(reflector: Reflector, *signals: Signal) -> None:
    await reflector.run(Scripted(*signals))  # type: ignore[arg-type]


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
@pytest.mark.usefixtures("short_turns")
async def test_other_work_goes_on_while_many_objects_are_processed(signals, rounds) -> None:
    state = ClusterState()

    await take(Reflector(PODS, state, lambda: None), *signals)

    assert len(state.unbound_pods) == 200
    assert rounds.count > 150


@pytest.mark.usefixtures("short_turns")
async def test_other_work_goes_on_while_a_new_list_replaces_many_objects(rounds) -> None:
    state = ClusterState()
    reflector = Reflector(PODS, state, lambda: None)
    await take(reflector, Page(pods(200), first=True), ListEnd())
    before = rounds.count

    await take(reflector, Page(pods(1), first=True), ListEnd())

    assert len(state.unbound_pods) == 1
    assert rounds.count - before > 350  # it copies 200 keys and drops 199 objects


@pytest.mark.usefixtures("short_turns")
async def test_the_objects_of_two_kinds_are_not_processed_in_the_same_round(rounds) -> None:
    shared, order = Background(), []

    class Recorded(ClusterState):
        def put(self, thing: Any) -> None:
            order.append(rounds.count)
            super().put(thing)

    both = (Reflector(PODS, Recorded(), lambda: None, shared) for _ in range(2))
    await asyncio.gather(*(take(it, Page(pods(20), first=True), ListEnd()) for it in both))

    assert len(order) == len(set(order)) == 40


async def test_a_reflector_notifies_once_a_signal_not_once_an_object() -> None:
    notified: list[int] = []
    state = ClusterState()
    reflector = Reflector(PODS, state, lambda: notified.append(len(state.unbound_pods)))

    await take(reflector, Page(pods(3), first=True), ListEnd())

    assert notified == [3, 3]


async def test_a_gap_ends_with_the_list_that_follows_it() -> None:
    reflector = Reflector(PODS, ClusterState(), lambda: None)
    listing: list[Signal] = [Page(pods(1), first=True), ListEnd()]
    gone = Lost(RequestError("gone", 410), gap=True)

    await take(reflector, *listing, gone)
    assert reflector.gap
    await take(reflector, *listing)
    assert not reflector.gap
    assert reflector.error is None


BROKEN = Lost(RequestError("broken"), gap=False)
RESUMED, CAUGHT_UP = Confirmed([], caught_up=False), Confirmed([])


AGAIN = [(9, RESUMED), (2, BROKEN)]
COUNTS_IF = {
    "it has just broken": [(50, BROKEN)],
    "it is back in time": [(50, BROKEN), (9, RESUMED)],
    "it is back in time again and again": [(50, BROKEN), *AGAIN, (9, RESUMED)],
    "it breaks again and again after all that was missed has come": [
        (50, BROKEN), *3 * [(9, RESUMED), (2, CAUGHT_UP), (2, BROKEN)]
    ],
    "all has come although it broke again and again": [
        (50, BROKEN), *3 * AGAIN, (3, CAUGHT_UP)
    ],
    "all that was missed has come": [(50, BROKEN), (11, RESUMED), (3, CAUGHT_UP)],
    "it breaks after that": [(50, BROKEN), (11, CAUGHT_UP), (50, BROKEN)],
}  # fmt: skip
DOES_NOT_IF = {
    "it breaks again and again before all that was missed has come": [(50, BROKEN), *3 * AGAIN],
    "it stays broken": [(50, BROKEN), (6, BROKEN), (5, None)],
    "it comes back late": [(50, BROKEN), (11, RESUMED)],
    "it comes back late and breaks again": [
        (50, BROKEN), (11, RESUMED), (2, BROKEN), (1, RESUMED)
    ],
    "it was dead for long before it broke": [(75, BROKEN), (1, RESUMED)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "is_live"),
    [*((it, True) for it in COUNTS_IF.values()), *((it, False) for it in DOES_NOT_IF.values())],
    ids=[*COUNTS_IF, *DOES_NOT_IF],
)
async def test_what_was_known_before_a_broken_watch_counts_if(steps, is_live, monkeypatch) -> None:
    """A quiet cluster confirms it once a minute, and a new watch begins before it tells changes."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reflector = Reflector(PODS, ClusterState(), lambda: None)
    await take(reflector, Page([], first=True), ListEnd())
    for seconds, signal in steps:
        now += seconds
        await take(reflector, *filter(None, [signal]))

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
        await take(reflector, signal)
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
        await take(Reflector(PODS, ClusterState(), lambda: None), page)
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

    await take(Reflector(PODS, ClusterState(), lambda: None), page, ListEnd())

    [line] = [it.getMessage() for it in caplog.records if "cannot be understood" in it.getMessage()]
    assert said in line
    assert line.isprintable()
    assert len(line) < 800
