"""What a hub has once that keeps a record of the use of GPUs."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from gpuspawner.record import Fact
from gpuspawner.runtime import Runtime
from gpuspawner.use.files import FactFiles, Writer
from gpuspawner.use.hub_events import HubEvents
from gpuspawner.use.live_census import LiveCensus
from gpuspawner.use.metrics import Gauges, Metrics
from gpuspawner.use.page import serve
from gpuspawner.use.record import MOST_FACTS, Record, Server
from gpuspawner.use.written import UseRules

log = logging.getLogger(__name__)


class HubUse:
    """The record of one hub, and what reads it.

    Attributes:
        running: What else the hub has once.
        rules: What is kept, and for how long.
        record: What has happened.
        census: Who has the GPUs.
        known: What is known of the use of servers' GPUs, for the page.
    """

    def __init__(
        self, hub: Any, running: Runtime, rules: UseRules, tolerations: Sequence[Any] = ()
    ) -> None:
        self.running = running
        self.rules = rules
        self.record = Record([Metrics().count, HubEvents(hub).emit])
        self._files = FactFiles(rules.directory, rules.days) if rules.directory else None
        self.known: dict[Server, Fact] = {}
        self.census = LiveCensus(hub, running, tolerations)
        Gauges(running, self.census)
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


def begin(hub: Any, running: Runtime, rules: UseRules, tolerations: Sequence[Any] = ()) -> HubUse:
    """Keep the record of a hub from now on; its servers have these tolerations."""
    made = HubUse(hub, running, rules, tolerations)
    running.run(made.run())
    running.run(made.census.run())
    serve(hub, made)
    return made
