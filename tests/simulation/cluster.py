"""A played cluster of GPUs: it answers what the line asks about nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import KnownEnd, Ticket
from gpuspawner.scheduling.requests import Amounts

GPU = "nvidia.com/gpu"


class Needs(NamedTuple):
    """What a server asks for; any model if it names none."""

    gpus: int
    model: str = ""


@dataclass(slots=True)
class Server:
    """A server that runs; *ends* is when it has to end, in seconds, if it has to."""

    key: Key
    node: str
    gpus: int
    ends: float | None


@dataclass(slots=True)
class Node:
    """A node, with its servers."""

    name: str
    model: str
    gpus: int
    free: int
    servers: dict[Key, Server] = field(default_factory=dict)


class Cluster:
    """Nodes, found by how many of their GPUs are free.

    Attributes:
        now: The time, in seconds.
        servers: All that run.
    """

    def __init__(self, nodes: Iterable[tuple[str, str, int]]) -> None:
        self.now = 0.0
        self.nodes = {name: Node(name, model, gpus, gpus) for name, model, gpus in nodes}
        self.servers: dict[Key, Server] = {}
        self.free_gpus = sum(node.gpus for node in self.nodes.values())
        self._by_free: dict[str, dict[int, dict[str, None]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._reach: dict[Needs, frozenset[str]] = {}
        for node in self.nodes.values():
            self._by_free[node.model][node.free][node.name] = None

    def fitting(self, ticket: Ticket) -> Collection[str]:
        needs = ticket.needs
        assert isinstance(needs, Needs)
        models = [needs.model] if needs.model else list(self._by_free)
        return [
            name
            for model in models
            for free, names in self._by_free[model].items()
            if free >= needs.gpus
            for name in names
        ]

    def possible(self, ticket: Ticket) -> frozenset[str]:
        needs = ticket.needs
        assert isinstance(needs, Needs)
        if needs not in self._reach:
            self._reach[needs] = frozenset(
                it.name
                for it in self.nodes.values()
                if it.gpus >= needs.gpus and needs.model in ("", it.model)
            )
        return self._reach[needs]

    def free(self, node: str) -> Amounts:
        return {GPU: self.nodes[node].free}

    def unpromised(self, node: str) -> Amounts:
        return self.free(node)  # a promise starts the server at once

    def ends(self, node: str) -> Sequence[KnownEnd]:
        known = [it for it in self.nodes[node].servers.values() if it.ends is not None]
        known.sort(key=lambda it: it.ends or 0.0)
        return [KnownEnd((it.ends or 0.0) - self.now, {GPU: it.gpus}) for it in known]

    def promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        """Start the server at once, on the fullest node, as a scheduler that packs does."""
        names = [name for name in self.fitting(ticket) if name not in kept_off]
        if not names:
            return False
        self.start(ticket, min(names, key=lambda name: (self.nodes[name].free, name)))
        return True

    def start(self, ticket: Ticket, name: str) -> None:
        """Start a server on a node."""
        node, gpus = self.nodes[name], ticket.requests[GPU]
        assert gpus <= node.free, "a GPU was given twice"
        assert ticket.key not in self.servers, "a server was started twice"
        ends = None if ticket.lifetime is None else self.now + ticket.lifetime
        server = Server(ticket.key, name, gpus, ends)
        self.servers[ticket.key] = node.servers[ticket.key] = server
        self._move(node, -gpus)

    def end(self, key: Key) -> None:
        """End a server."""
        server = self.servers.pop(key)
        node = self.nodes[server.node]
        del node.servers[key]
        self._move(node, server.gpus)

    def _move(self, node: Node, gpus: int) -> None:
        places = self._by_free[node.model]
        del places[node.free][node.name]
        if not places[node.free]:
            del places[node.free]
        node.free += gpus
        self.free_gpus += gpus
        places[node.free][node.name] = None


def ticket(
    name: str,
    gpus: int = 1,
    since: float = 0.0,
    *,
    model: str = "",
    weight: float = 1.0,
    lifetime: float | None = None,
) -> Ticket:
    """Make a ticket for a number of GPUs."""
    requests: Mapping[str, int] = {GPU: gpus}
    return Ticket(("hub", name), name, Needs(gpus, model), requests, since, weight, lifetime)
