"""What the agent's nodes are set to: alive or dead, and what they are short of."""

import asyncio
from collections import defaultdict

from localcluster.agent.api import Change, ChangeKind
from localcluster.agent.pressure import Shortage, shortages
from localcluster.nodes import SILENT


class NodeStates:
    """Says what happens to nodes, by their names; a node that is not known is alive and well."""

    def __init__(self) -> None:
        self._dead: set[str] = set()
        self._short: dict[str, tuple[Shortage, ...]] = {}
        self._changed: dict[str, asyncio.Condition] = defaultdict(asyncio.Condition)

    async def see(self, change: Change) -> None:
        """Remember a node as it is now."""
        node = change.object
        name, annotations = node["metadata"]["name"], node["metadata"].get("annotations", {})
        is_there = change.kind is ChangeKind.PUT
        is_dead = is_there and annotations.get(SILENT) == "true"
        short = shortages(node) if is_there else ()
        if is_dead == (name in self._dead) and short == self.short_of(name):
            return
        (self._dead.add if is_dead else self._dead.discard)(name)
        self._short[name] = short
        async with self._changed[name]:
            self._changed[name].notify_all()

    def short_of(self, name: str) -> tuple[Shortage, ...]:
        """Return what a node is short of."""
        return self._short.get(name, ())

    async def wait_alive(self, name: str) -> None:
        """Wait while the node is dead: it can neither write nor read."""
        if name in self._dead:
            async with self._changed[name]:
                await self._changed[name].wait_for(lambda: name not in self._dead)

    async def wait_short(self, name: str) -> Shortage:
        """Wait until the node is alive and short of something; return what pods are evicted for."""
        async with self._changed[name]:
            await self._changed[name].wait_for(
                lambda: self.short_of(name) and name not in self._dead
            )
        return self.short_of(name)[0]
