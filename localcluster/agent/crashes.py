"""Containers that end because their pod's annotations say so."""

import asyncio

from localcluster.agent.faults import Faults
from localcluster.agent.runtime import Exit, Running


class Doomed:
    """A container that ends after some seconds, or with its process, as its pod asks."""

    def __init__(self, running: Running, faults: Faults) -> None:
        self._running = running
        self._faults = faults

    async def wait(self) -> Exit:
        """Wait until its process ends, or end that when its time has come."""
        try:
            ended = await asyncio.wait_for(self._running.wait(), self._faults.exits_after)
        except TimeoutError:
            ended = await self._running.stop(0)
        faults = self._faults
        return Exit(faults.exit_code, faults.exit_reason, faults.exit_output or ended.output)

    async def stop(self, grace: float) -> Exit:
        """End it before its time."""
        return await self._running.stop(grace)


def doomed(running: Running, faults: Faults, attempt: int) -> Running:
    """Return the container, doomed if the annotations say so of this attempt, counted from 0."""
    is_doomed = faults.exits_after is not None and attempt < faults.exit_times
    return Doomed(running, faults) if is_doomed else running
