"""What is asked once: RuntimeClasses, and the drivers of claims."""

import pytest

from gpuspawner.cluster.unwatched_objects import claim_drivers, runtime_classes
from tests.unit.makers.scripted import ScriptedServer, Step, failure, obj, page, raw


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
