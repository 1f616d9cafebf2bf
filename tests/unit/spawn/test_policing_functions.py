"""Policies that a function of the administrator returns for each server."""

import asyncio
import logging
from typing import Any

import pytest
from tornado import web

from tests.unit.spawn.courses import begin, refused, refused_query


async def test_a_function_makes_the_policies_for_each_server(course) -> None:
    asked: list[Any] = []

    def policies(spawner: Any) -> dict[str, Any]:
        asked.append(spawner)
        return {"course": {"gpus_per_server": 1 if spawner.user.name == "alice" else 8}}

    spawner = course.spawner(policies)

    assert (await refused(spawner, gpus=2)).status_code == 403
    assert set(asked) == {spawner}


@pytest.mark.parametrize("waits", [False, True])
async def test_a_function_may_be_asynchronous(waits, course) -> None:
    async def policies(_: Any) -> dict[str, Any]:
        if waits:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.001)
        return {"course": {"gpus_per_user": 2}}

    spawner = course.spawner(policies)

    assert (await refused(spawner, gpus=4)).status_code == 403
    assert (await refused_query(spawner, accelerator="t4", gpus="4")).status_code == 403
    await begin(spawner, gpus=2)
    assert course.counted(spawner) == 2


@pytest.mark.parametrize(
    "returned",
    [
        None,
        7,
        [],
        "course",
        {"course": {"gpu_per_user": 1}},
        {"course": {"gpus_per_user": "many"}},
        {"course": 1},
        {1: {}},
    ],
)
async def test_nonsense_from_a_function_opens_nothing_and_is_a_misconfiguration(
    returned, course, caplog
) -> None:
    caplog.set_level(logging.INFO)
    spawner = course.spawner(lambda _: returned)

    for refusal in (await refused_query(spawner, accelerator="t4"), await refused(spawner)):
        assert refusal.slug == "misconfigured"
        assert "an error in the hub's configuration" in refusal.text
        assert "course" not in refusal.text
    assert "GPUSpawner.policies" in caplog.text


async def test_a_function_that_raises_opens_nothing(course, caplog) -> None:
    caplog.set_level(logging.INFO)

    def policies(_: Any) -> dict[str, Any]:
        raise KeyError("https://budget.example.org/token")

    refusal = await refused(course.spawner(policies))

    assert refusal.slug == "misconfigured"
    assert "budget" not in refusal.text
    assert "The function GPUSpawner.policies failed" in caplog.text


async def test_a_function_may_forbid_a_server_itself(course) -> None:
    def policies(_: Any) -> dict[str, Any]:
        raise web.HTTPError(403, "Your budget is used up.")

    with pytest.raises(web.HTTPError, match="Your budget is used up") as raised:
        await begin(course.spawner(policies))

    assert raised.value.status_code == 403


async def test_a_function_may_return_no_policies(course) -> None:
    await begin(course.spawner(lambda _: {}), gpus=8)
