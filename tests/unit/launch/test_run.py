"""A start is followed from the first event of its pod on."""

import asyncio
from typing import Any

import pytest

from gpuspawner.gates.refusal import Refusal
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import strict_convert
from tests.unit.makers.hubs import A100
from tests.unit.makers.worlds import node

pytestmark = pytest.mark.usefixtures("clock")

TAKEN = (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
    "Requested: 1, Available: 0, which is unexpected"
)


async def test_an_event_that_comes_before_the_hub_knows_that_the_pod_exists_is_heard(
    hub_with,
) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner: Any = hub.spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    named = {"name": spawner.pod_name, "namespace": spawner.namespace}
    pod = {"metadata": {**named, "uid": "u"}, "spec": {}, "status": {"phase": "Pending"}}
    refused = {
        "metadata": {**named, "name": "e", "resourceVersion": "1"},
        "involvedObject": {"name": spawner.pod_name, "uid": "u"},
        "reason": "UnexpectedAdmissionError",
        "type": "Warning",
        "message": TAKEN,
    }
    run = spawner.gpuspawner_gates._new_run()
    run.sent.set()
    spawner.gpuspawner_stock.known_pod = lambda: pod

    following = asyncio.create_task(run.until_failed())
    await asyncio.sleep(0)
    hub.view.events.hear(strict_convert(refused, Event))
    run.created.set()

    with pytest.raises(Refusal, match="The GPU was taken just before your server got it"):
        await asyncio.wait_for(following, 3600)


async def test_a_start_goes_on_if_following_it_fails_by_itself(hub_with, caplog) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner: Any = hub.spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    run = spawner.gpuspawner_gates._new_run()
    run.sent.set()
    run.created.set()

    def known_pod() -> None:
        raise KeyError("a bug")

    spawner.gpuspawner_stock.known_pod = known_pod

    await asyncio.wait_for(run.until_failed(), 3600)
    assert "its start goes on" in caplog.text
