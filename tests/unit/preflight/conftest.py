"""Settings of all tests of the preflight: they don't wait for the clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module

import pytest

from tests.unit.preflight.line_stage import FULL, Stage
from tests.unit.preflight.virtual_time import CLOCK, VirtualClock, VirtualLoop

CLOCKS = (
    "cluster.view",
    "preflight.fronts",
    "preflight.held_back",
    "preflight.in_view",
    "preflight.line_room",
    "preflight.node_waits",
    "preflight.pending_pods",
    "preflight.preflight",
    "preflight.prospects",
    "preflight.reservations",
    "preflight.waiting_line",
    "queue.kept",
)
"""The modules that ask what time it is."""


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], VirtualLoop]]:
    return {"virtual time": VirtualLoop}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    CLOCK.now = math.ceil(CLOCK.now)  # sums of whole seconds are exact
    for name in CLOCKS:
        monkeypatch.setattr(import_module(f"gpuspawner.{name}"), "time", CLOCK)
    return CLOCK


@pytest.fixture
def stage() -> Stage:
    """A node whose two GPUs are in use."""
    return Stage(*FULL)
