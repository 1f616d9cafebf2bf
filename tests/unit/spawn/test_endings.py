"""How the last server ended is known on the next form."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from gpuspawner.spawn import endings
from tests.unit.spawn.courses import Course

ENDED = {
    "spec": {"activeDeadlineSeconds": 3600},
    "status": {"phase": "Failed", "reason": "DeadlineExceeded"},
}


async def test_a_lifetime_is_known_to_have_ended_while_kubespawner_still_deletes_the_pod(
    course: Course,
) -> None:
    """Another poll finds no pod meanwhile, and the hub then takes the server for gone."""
    spawner = course.spawner({"short": {"lifetime": "1h"}})
    spawner.api, is_gone = object(), asyncio.Event()

    async def delete_and_return_its_code() -> int:
        await is_gone.wait()
        return 1

    spawner.stock.known_pod = lambda: ENDED
    spawner.stock.kubespawner = SimpleNamespace(poll=delete_and_return_its_code)
    poll = asyncio.create_task(spawner.poll())
    await asyncio.sleep(0)

    told = endings.told_after(spawner, course.of(spawner))

    assert told == "Your last server ended after 1 hour, the longest that it may run."
    is_gone.set()
    assert await poll == 1


@pytest.mark.parametrize("is_stopped", [True, False], ids=["and is stopped", "without a container"])
async def test_a_pod_that_ends_while_kubespawner_looks_is_known_to_have_ended(
    course: Course, is_stopped: bool
) -> None:
    spawner = course.spawner({"short": {"lifetime": "1h"}})
    pods: list[object] = [{"status": {"phase": "Running"}}]

    async def ends() -> int:
        pods[0] = ENDED
        if is_stopped:
            await spawner.stop(now=True)
        return 1

    async def delete(_: object) -> None:
        pods[0] = None

    spawner.api = object()
    spawner.stock.known_pod = lambda: pods[0]
    spawner.stock.kubespawner = SimpleNamespace(poll=ends, stop=delete)

    await spawner.poll()

    told = endings.told_after(spawner, course.of(spawner))
    assert told == "Your last server ended after 1 hour, the longest that it may run."
