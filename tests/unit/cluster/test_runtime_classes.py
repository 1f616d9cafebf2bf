"""Which RuntimeClasses the cluster has."""

import pytest

from gpuspawner.cluster.runtime_classes import runtime_classes
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
