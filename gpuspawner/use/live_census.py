"""The census of a hub's cluster, kept current in short turns."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpuspawner.cluster.background import Turn
from gpuspawner.compat.jupyterhub import all_users, starting
from gpuspawner.kube.meta import Key
from gpuspawner.offers.types import Accelerator
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.use.census import Census, NodeGpus, census, counted_as, node_gpus, selectors

log = logging.getLogger(__name__)

TURN_SECONDS = 0.002
"""How long a count or a page may hold the event loop."""
_EVERY_SECONDS = 5.0
"""How old the figures of a scrape may be. Pages count anew."""


class LiveCensus:
    """The last census, and how it is taken. A node is counted again only if it has changed.

    Args:
        tolerations: Those that every server of the hub has.

    Attributes:
        last: As it was taken last.
        starting: The pods of the servers that started then.
        version: Increases whenever it differs from the one before.
    """

    def __init__(self, hub: Any, running: Runtime, tolerations: Sequence[Any] = ()) -> None:
        self.last = Census()
        self.version = 0
        self._hub = hub
        self._running = running
        self._tolerations = tolerations
        self._offered: tuple[Accelerator, ...] = ()
        self._selectors = selectors(())
        self.starting: frozenset[Key] = frozenset()
        self._counted: dict[str, tuple[int, tuple[NodeGpus, ...]]] = {}
        self._rows: dict[tuple[str, str], NodeGpus] = {}
        self._taking = asyncio.Lock()
        if running.accounts is not None:
            running.accounts.usage.listen(lambda key, _: self._forget(key))

    async def run(self) -> None:
        """Take it now and then, for scrapes. Never raises."""
        while True:
            try:
                await self.take()
            except Exception:
                log.exception("Can't count GPUs right now")
            await asyncio.sleep(_EVERY_SECONDS)

    async def take(self) -> Census:
        """Take it of this moment."""
        async with self._taking:
            running, turn = self._running, Turn(TURN_SECONDS)
            if running.accounts is not None:  # the database says whose the pods are
                running.accounts.read(self._hub.db)
            self._note_offers(tuple(running.offers.accelerators.values()))
            self.starting = await self._sent(turn)
            found: list[NodeGpus] = []
            for node in list(running.view.state.nodes.values()):
                await turn.end_if_long()
                found += self._of(node)
            for gone in self._counted.keys() - running.view.state.nodes.keys():
                del self._counted[gone]
            await turn.end_if_long()
            line, promised = running.preflight.line, running.preflight.reservations.promised()
            taken = census(found, promised, line.kept())
            if taken != self.last:
                self.last, self.version = taken, self.version + 1
                self._rows = {(it.node, it.resource): it for it in taken.nodes}
            return self.last

    def counted_as(self, pod: Key, kind: str) -> str:
        """Return as which accelerator the GPUs of a server count; *kind* is what its pod says."""
        there, accounts = self._running.view.state.pods.find("/".join(pod)), self._running.accounts
        charge = accounts.usage.pods.get(pod) if accounts is not None else None
        if there is None or charge is None:
            return kind
        return counted_as(self._rows.get((there.node, charge.device or "")), kind)

    async def _sent(self, turn: Turn) -> frozenset[Key]:
        """Return the pods of servers that start: without policies, no start is counted.

        Of the thousands that run, the database would have to say so after each of its faults.
        """
        found: set[Key] = set()
        for user in all_users(self._hub):
            await turn.end_if_long()
            found.update((it.namespace, it.pod_name) for it in starting(user).values())
        return frozenset(found)

    def _note_offers(self, offered: tuple[Accelerator, ...]) -> None:
        if offered != self._offered:
            self._offered, self._selectors = offered, selectors(offered, self._tolerations)
            self._counted.clear()

    def _forget(self, key: Key) -> None:
        """Count a node again: the hub has learnt whose one of its pods is."""
        pod = self._running.view.state.pods.find("/".join(key))
        if pod is not None:
            self._counted.pop(pod.node, None)

    def _of(self, node: NodeInfo) -> tuple[NodeGpus, ...]:
        known = self._counted.get(node.name)
        if known is None or known[0] != node.generation:
            counted = node_gpus(node, self._ours(node), self._selectors)
            known = self._counted[node.name] = node.generation, counted
        return known[1]

    def _ours(self, node: NodeInfo) -> Counter[str]:
        found: Counter[str] = Counter()
        if self._running.accounts is not None:
            shown = self._running.accounts.usage.pods
            for pod in node.pods.values():
                if (key := (pod.namespace, pod.name)) in shown or key in self.starting:
                    found.update(pod.requested)
        return found
