"""Turns on the event loop."""

from __future__ import annotations

import asyncio

import pytest

from gpuspawner.cluster import turn
from gpuspawner.cluster.turn import Turn

pytestmark = pytest.mark.each_python


async def test_other_tasks_run_after_each_long_turn_and_not_before(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(turn.time, "perf_counter", lambda: now)
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(count())
    its = Turn(2.0)
    seen = []
    for now in (1.0, 2.5, 3.5, 4.0, 5.0):  # noqa: B007, the clock reads it
        await its.end_if_long()
        seen.append(passes)

    assert seen == [0, 1, 1, 1, 2]
    other.cancel()
