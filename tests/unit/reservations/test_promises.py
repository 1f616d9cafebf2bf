"""A start counts from its grant on, and its charge ends however the start ends."""

import asyncio
from contextlib import suppress
from typing import Any
from unittest.mock import AsyncMock

import pytest
from jupyterhub.objects import Server

from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import Course, Train, begin, refused, sends
from tests.unit.makers.worlds import node, pod


@pytest.fixture
async def spawner(course) -> Any:
    """A spawner whose start has got all that a policy allows."""
    made = course.spawner({"course": {"gpus_per_user": 4}})
    await begin(made, gpus=4)
    return made


async def test_a_start_that_the_preflight_refuses_leaves_no_charge(hub_with) -> None:
    course = Course(hub_with(("Node", node("a", 1))))
    spawner = course.spawner({"course": {"gpus_per_user": 4}}, autoscaling="none")

    refusal = await refused(spawner, gpus=4)

    assert refusal.slug == "impossible"
    assert course.counted(spawner) == 0


async def test_a_start_whose_hook_fails_leaves_no_charge(course) -> None:
    def hook(_: Any) -> None:
        raise ValueError("the file server is away")

    spawner = course.spawner({"course": {"gpus_per_user": 4}}, pre_spawn_hook=hook)
    with pytest.raises(ValueError, match="away"):
        await begin(spawner, gpus=4)
    assert course.counted(spawner) == 4

    spawner.clear_state()  # as the hub does after each start

    assert course.counted(spawner) == 0


async def test_a_start_that_fails_before_its_pod_is_sent_leaves_no_charge(course, spawner) -> None:

    async def run_start() -> None:
        assert course.counted(spawner) == 4
        raise TimeoutError("no home directory")

    spawner.gpuspawner_stock.run_start = run_start
    with pytest.raises(Refusal, match="isn't connected to a cluster"):
        await spawner.gpuspawner_gates.run_start()

    assert course.counted(spawner) == 0


def sends_and_waits(spawner: Train) -> asyncio.Event:
    """Make KubeSpawner's start wait once its pod is sent; return what says that it is."""
    was_sent = asyncio.Event()

    async def wait_forever() -> None:
        was_sent.set()
        await asyncio.Event().wait()

    sends(spawner, wait_forever)
    return was_sent


async def cancel(spawner: Train, was_sent: asyncio.Event) -> None:
    start = spawner.gpuspawner_gates.start()
    await was_sent.wait()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start


@pytest.mark.each_python
async def test_a_start_that_is_cancelled_after_its_pod_was_sent_counts_until_it_is_shown(
    course, spawner
) -> None:
    await cancel(spawner, sends_and_waits(spawner))
    assert course.counted(spawner) == 4

    course.show(spawner, 4)
    assert course.counted(spawner) == 4
    course.accounts(spawner).reservations.look()
    course.hide(spawner)

    assert course.counted(spawner) == 0


@pytest.mark.each_python
async def test_a_cancelled_start_leaves_no_pod_no_charge_and_no_server(course, spawner) -> None:
    """The hub would call a server ready whose start was cancelled."""
    was_sent = sends_and_waits(spawner)
    spawner.gpuspawner_stock.stops_pod = lambda: True
    spawner.gpuspawner_stock.delete_pod = AsyncMock(return_value=True)
    spawner.server = Server()
    await cancel(spawner, was_sent)

    spawner.gpuspawner_stock.delete_pod.assert_awaited_once()
    assert course.counted(spawner) == 0
    assert spawner.server is None


@pytest.mark.each_python
async def test_a_cancelled_start_whose_pod_may_exist_keeps_its_server_for_the_hub_to_stop(
    spawner,
) -> None:
    spawner.server = Server()
    await cancel(spawner, sends_and_waits(spawner))

    assert spawner.server is not None


async def test_a_class_that_cancels_kubespawner_s_start_and_starts_again_keeps_its_server(
    spawner,
) -> None:
    spawner.server = server = Server()
    was_sent = sends_and_waits(spawner)
    spawner.gpuspawner_stock.delete_pod = AsyncMock(return_value=True)

    first = asyncio.ensure_future(spawner.gpuspawner_gates.run_start())
    await was_sent.wait()
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    sends(spawner)
    await spawner.gpuspawner_gates.run_start()

    assert spawner.server is server


async def test_a_start_whose_pod_certainly_does_not_exist_leaves_no_charge(course, spawner) -> None:

    def fail() -> None:
        raise TimeoutError("the container doesn't start")

    sends(spawner, fail)
    spawner.gpuspawner_stock.delete_pod = AsyncMock(return_value=True)
    with pytest.raises(Refusal, match="Your server didn't start in time"):
        await spawner.gpuspawner_gates.run_start()

    assert course.counted(spawner) == 0


async def test_a_start_that_is_only_warned_gives_its_room_back_and_still_counts(course) -> None:
    made = course.spawner({"course": {"gpus_per_user": 4}}, preflight="warn")
    await begin(made, gpus=4)
    reservations, seen = course.accounts(made).reservations, []

    def look() -> None:
        seen.append((reservations.find((made.namespace, made.pod_name)), course.counted(made)))

    for name, on in (("x", "a"), ("y", "b")):
        course.hub.view.put("Pod", pod(name, 16, on=on))
    sends(made, look)
    await made.gpuspawner_gates.run_start()

    assert seen == [(None, 4)]


async def test_a_renamed_pod_counts_once(course, spawner) -> None:
    """As a hook or a profile may rename it after the second gate."""
    seen: list[int] = []

    def show() -> None:
        course.show(spawner, 4)
        seen.append(course.counted(spawner))

    spawner.pod_name, spawner.namespace = "lab-of-alice", "labs"
    sends(spawner, show)
    await spawner.gpuspawner_gates.run_start()

    assert seen == [4]
    course.hide(spawner)
    assert course.counted(spawner) == 0


async def test_a_renamed_pod_that_is_refused_leaves_no_charge(course, spawner) -> None:
    spawner.pod_name = "lab-of-alice"
    sends(spawner, limits={"nvidia.com/gpu": "8"})

    with pytest.raises(Refusal, match="You can have at most 4 GPUs"):
        await spawner.gpuspawner_gates.run_start()

    assert course.counted(spawner) == 0


async def test_what_an_earlier_start_has_left_stays_under_its_own_name(course, spawner) -> None:
    await cancel(spawner, sends_and_waits(spawner))
    spawner.clear_state()
    allowed = course.spawner({"course": {"gpus_per_user": 4}})
    await begin(allowed, gpus=4)
    allowed.pod_name = "lab-of-alice"

    sends(allowed)
    with pytest.raises(Refusal, match="You can have 4 GPUs at a time"):
        await allowed.gpuspawner_gates.run_start()

    assert course.counted(allowed) == 4
