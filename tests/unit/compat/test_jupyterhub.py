"""Refusals aren't failures of the hub's; tests/hub/gates/test_refusals.py asks a hub."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS, forgive

pytestmark = pytest.mark.skipif(
    not COUNTS_REFUSALS, reason="version: JupyterHub 6 doesn't count refusals"
)


class Start:
    """A start that the hub counts as ``spawn_single_user`` of JupyterHub 5 does, if it fails."""

    def __init__(self, before: int) -> None:
        self.settings = {"failure_count": before}
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        handler = SimpleNamespace(settings=self.settings)
        self.spawner: Any = SimpleNamespace(
            _spawn_future=self.future, handler=handler, consecutive_failure_limit=5
        )
        self.future.add_done_callback(self._count)

    def _count(self, _: object) -> None:
        self.settings["failure_count"] += 1

    async def fail(self) -> None:
        self.future.set_exception(RuntimeError("refused"))
        await asyncio.sleep(0)
        assert self.future.exception()


async def test_a_start_that_is_refused_twice_is_taken_back_once() -> None:
    """So is one whose room is taken after its turn in line: it is refused, and waits again."""
    start = Start(before=2)

    forgive(start.spawner)
    forgive(start.spawner)
    await start.fail()

    assert start.settings["failure_count"] == 2
    assert start.spawner.consecutive_failure_limit == 5
