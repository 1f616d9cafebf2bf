"""A hub spends little time on Python's garbage collection, and still collects all garbage."""

from __future__ import annotations

import requests

from tests.hub.conftest import StartHub
from tests.hub.running import RunningHub

COLLECTING = """
import gpuspawner
from tests.hub.collecting import Collected
c.JupyterHub.extra_handlers = [("/collected", Collected)]
{more}
gpuspawner.configure(c)
"""


def collected(hub: RunningHub) -> dict[str, int]:
    """Collect everything; return what is tracked and frozen then."""
    told: dict[str, int] = requests.get(f"{hub.direct}/hub/collected", timeout=60).json()
    return told


def test_a_full_collection_has_little_to_look_through_and_requests_leave_nothing(
    start_hub: StartHub,
) -> None:
    with start_hub(COLLECTING.format(more="")) as hub:
        ann = hub.person("ann")
        for _ in range(200):  # the hub's own caches fill
            ann.open("/hub/home")
        before = collected(hub)
        for _ in range(100):
            ann.open("/hub/home")
        after = collected(hub)

    assert before["frozen"] > 100_000
    assert before["tracked"] < 50_000
    assert after["tracked"] - before["tracked"] < 500
    assert after["frozen"] <= before["frozen"]


def test_an_administrator_can_switch_freezing_off(start_hub: StartHub) -> None:
    with start_hub(COLLECTING.format(more="c.GPUSpawner.gc_freeze = False")) as hub:
        told = collected(hub)

    assert told["frozen"] < 1_000
    assert told["tracked"] > 100_000
