"""What a hub has once that keeps a record of the use of GPUs."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from gpuspawner.compat.pages import announce_on
from gpuspawner.kube.meta import Key
from gpuspawner.launch.hub_pages import or_nothing
from gpuspawner.runtime import Runtime
from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.use import capacity_page, gpus_page, idle_pages
from gpuspawner.use.daemon_threads import aside
from gpuspawner.use.gpu_use_config import UseRules
from gpuspawner.use.idle_servers import GPUUse
from gpuspawner.use.live_census import LiveCensus
from gpuspawner.use.metrics import Gauges, Metrics
from gpuspawner.use.prometheus import Prometheus
from gpuspawner.use.record import MOST_FACTS, Record
from gpuspawner.use.record_files import FactFiles, Writer
from gpuspawner.use.watching import UseWatch

log = logging.getLogger(__name__)

_PATIENCE = 60.0
"""How long, in seconds, the hub waits for what earlier hubs have kept; all of it takes two."""


class HubUse:
    """The record of one hub, and what reads it.

    Attributes:
        hub: The `JupyterHub`.
        running: What else the hub has once.
        record: What has happened.
        census: Who has the GPUs.
        watch: Whether GPUs are used; None if nobody can say.
    """

    def __init__(
        self, hub: Any, running: Runtime, rules: UseRules, tolerations: Sequence[Any] = ()
    ) -> None:
        self.hub = hub
        self.running = running
        self.record = Record([Metrics().count, HubEvents(hub).emit])
        self._files = FactFiles(rules.directory, rules.days) if rules.directory else None
        self.census = LiveCensus(hub, running, tolerations)
        running.record = self.record.note
        self.watch: UseWatch | None = None
        if rules.prometheus:
            source = Prometheus(rules.prometheus, rules.prometheus_labels)
            named = self.census.counted_as
            self.watch = UseWatch(running, source, rules.notify, counted_as=named)
            self._show(self.watch)
        Gauges(running, self.census, self.watch)
        idle_pages.serve(hub, self.record, self.watch)

    def _show(self, watch: UseWatch) -> None:
        """Let the hub's pages warn owners, and the line know what is idle."""
        for name in ("home", "spawn"):
            announce_on(self.hub, name, or_nothing(partial(idle_pages.told, watch)))
        if self.running.line is not None:
            self.running.line.unused_for = watch.unused_for

    def use_of(self, pod: Key) -> GPUUse | None:
        """Return what is known of the use of a pod's GPUs."""
        it = self.watch.find(pod) if self.watch is not None else None
        return it.use if it is not None else None

    async def run(self) -> None:
        """Take over what earlier hubs have kept, watch, and keep what happens. Never raises."""
        if self._files is None:
            await self._take_over(())
            return
        writer = Writer(self._files)
        self.record.read_by(writer.write)
        try:
            async with asyncio.TaskGroup() as beside:
                earlier = await self._earlier(self._files)
                # Also while facts are told: that may take long, and a hub may be killed meanwhile.
                beside.create_task(writer.run())
                await self._take_over(earlier)
        finally:
            for end in self.record.unproven_ends:
                writer.write(end)
            writer.finish()

    async def _earlier(self, files: FactFiles) -> Sequence[Fact]:
        try:
            async with asyncio.timeout(_PATIENCE):  # a disk may hang, and idle servers wait for it
                return list(await aside(files.read, MOST_FACTS))
        except Exception as error:  # noqa: BLE001, the hub may have no more threads
            log.warning("gpu_use.directory: the earlier record can't be read: %r", error)
            return ()

    async def _take_over(self, earlier: Sequence[Fact]) -> None:
        own = list(self.record.facts)
        untold = self.record.restore(earlier)
        if self.watch is not None:
            # Before the first look: nobody may be warned of a server that its owner keeps. The
            # record remembers only the newest facts, and these may be refusals.
            self.watch.restore([*earlier, *own, *untold])
            self.record.read_by(self.watch.hear)
            self.running.run(self.watch.run())
        await self.record.tell(untold)


def begin(hub: Any, running: Runtime, rules: UseRules, tolerations: Sequence[Any] = ()) -> HubUse:
    """Keep the record of a hub from now on; its servers have these tolerations."""
    made = HubUse(hub, running, rules, tolerations)
    running.run(made.run())
    running.run(made.census.run())
    gpus_page.serve(hub, made)
    capacity_page.serve(hub, made)
    return made


# The record as events of JupyterHub, for whatever handlers the administrator has set.

SCHEMA_ID = "https://schema.jupyter.org/gpuspawner/server"
SCHEMA = {
    "$id": SCHEMA_ID,
    "version": "1",
    "title": "Servers of gpuspawner",
    "description": "What has happened to a server, from its start to its end.",
    "personal-data": True,
    "type": "object",
    "required": ["happened", "user", "server"],
    "properties": {
        "happened": {"enum": [it.value for it in Happened], "description": "What has happened."},
        "user": {"type": "string", "description": "The name of the owner."},
        "server": {"type": "string", "description": "The name of the server; empty for default."},
        "reason": {"type": "string", "description": "Why it was refused, or has ended."},
        "accelerator": {"type": "string", "description": "The key of the accelerator."},
        "gpus": {"type": "integer", "description": "How many of its resource."},
        "seconds": {"type": "number", "description": "How long it has waited, run or been idle."},
        "node": {"type": "string", "description": "Where it runs."},
        "phases": {
            "type": "object",
            "description": "The seconds of each phase of the start.",
            "additionalProperties": {"type": "number"},
        },
    },
}


class HubEvents:
    """The events of one hub."""

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self._is_registered = False

    def emit(self, fact: Fact) -> None:
        """Emit a fact; without handlers, the hub's logger drops it at once."""
        logger = getattr(self._hub, "eventlog", None)
        if logger is None:
            return
        if not self._is_registered:  # the hub makes its logger after it has read its configuration
            logger.register_event_schema(SCHEMA)
            self._is_registered = True
        data = msgspec.to_builtins(fact)
        at = datetime.fromtimestamp(data.pop("at"), UTC)
        logger.emit(schema_id=SCHEMA_ID, data={"server": "", **data}, timestamp_override=at)
