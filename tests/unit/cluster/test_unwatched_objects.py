"""What is asked once: RuntimeClasses, and the drivers of claims."""

import asyncio

import pytest
from msgspec.structs import replace

from gpuspawner.cluster import unwatched_objects
from gpuspawner.cluster.unwatched_objects import RuntimeClasses, claim_drivers, runtime_classes
from tests.unit.makers.scripted import FAST, ScriptedServer, Step, cut, failure, obj, page, raw
from tests.waiting import UNIT_PATIENCE as PATIENCE

NVIDIA = page(obj("nvidia", handler="nvidia"))


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (page(obj("nvidia", handler="nvidia"), obj("kata")), {"nvidia", "kata"}),
        (page(), set()),
        (failure(403), set()),
        (raw(b"<html>"), set()),
    ],
)
async def test_the_names_are_those_that_the_api_server_tells(answer: Step, names: set[str]) -> None:
    async with ScriptedServer(runtimeclasses=[answer]).serving() as client:
        assert await runtime_classes(client) == names


async def test_each_driver_of_claims_is_told_with_its_node() -> None:
    slices = page(obj("s", spec={"driver": "gpu.nvidia.com", "nodeName": "a", "devices": []}))

    async with ScriptedServer(resourceslices=[slices]).serving() as client:
        assert await claim_drivers(client) == {("a", "gpu.nvidia.com")}


@pytest.mark.parametrize(
    "answer", [failure(503), failure(403), failure(404), failure(401), raw(b"<html>"), cut()]
)
async def test_runtime_classes_are_asked_for_until_the_api_server_tells_them(answer: Step) -> None:
    server = ScriptedServer(runtimeclasses=[answer, answer, NVIDIA])
    async with server.serving() as client, asyncio.timeout(PATIENCE):
        classes = RuntimeClasses(client, FAST)
        await classes.learn()

        assert classes.names == {"nvidia"}
        assert classes.is_settled


@pytest.mark.parametrize(("status", "is_settled"), [(503, False), (403, True), (404, True)])
async def test_nobody_waits_for_runtime_classes_that_the_api_server_refuses_to_tell(
    status: int, is_settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedServer(runtimeclasses=[failure(status)] * 1000).serving() as client:
        for longest, expected in ((PATIENCE, is_settled), (0.0, True)):
            monkeypatch.setattr(unwatched_objects, "_LONGEST_WAIT", longest)
            classes = RuntimeClasses(client, replace(FAST, last_if_refused=PATIENCE))
            learning = asyncio.create_task(classes.learn())

            await classes.settled(PATIENCE if expected else 0.1)
            assert classes.is_settled is expected

            learning.cancel()
            await asyncio.gather(learning, return_exceptions=True)
