"""What a hub has once that keeps a record of the use of GPUs."""

import asyncio
import logging
from typing import Any

from gpuspawner.runtime import Runtime
from gpuspawner.use.files import FactFiles, Writer
from gpuspawner.use.hub_events import HubEvents
from gpuspawner.use.metrics import Metrics
from gpuspawner.use.record import MOST_FACTS, Record
from gpuspawner.use.written import UseRules

log = logging.getLogger(__name__)


class HubUse:
    """The record of one hub, and what reads it.

    Attributes:
        rules: What is kept, and for how long.
        record: What has happened.
    """

    def __init__(self, hub: Any, running: Runtime, rules: UseRules) -> None:
        self.rules = rules
        self.record = Record([Metrics().count, HubEvents(hub).emit])
        self._files = FactFiles(rules.directory, rules.days) if rules.directory else None
        running.record = self.record.note

    async def run(self) -> None:
        """Take over what earlier hubs have kept, and keep what happens. Never raises."""
        if self._files is None:
            return
        writer = Writer(self._files)
        self.record.read_by(writer.write)
        try:
            self.record.restore(await asyncio.to_thread(self._files.read, MOST_FACTS))
        except OSError as error:
            log.warning("gpu_use.directory: the earlier record can't be read: %s", error)
        await writer.run()


def begin(hub: Any, running: Runtime, rules: UseRules) -> HubUse:
    """Keep the record of a hub from now on."""
    made = HubUse(hub, running, rules)
    running.run(made.run())
    return made
