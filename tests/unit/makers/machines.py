"""Nodes with GPUs and memory, for servers of any shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuspawner.kube.meta import Key
from gpuspawner.line.tickets import KnownEnd, Ticket
from gpuspawner.scheduling.requests import Amounts
from tests.simulation.cluster import GPU

MEMORY = "memory"
SIZE: Mapping[str, int] = {GPU: 8, MEMORY: 1024}
"""Of each node; memory in GiB."""


def asks(name: str, gpus: int, memory: int, since: float = 0.0) -> Ticket:
    """Make a ticket for so many GPUs, and so much memory in GiB."""
    shape = {GPU: gpus, MEMORY: memory}
    return Ticket(("hub", name), name, (gpus, memory), shape, since)


class Machines:
    """Nodes of one size: answers what the line asks about nodes. Nobody knows when a server ends.

    Attributes:
        servers: Those that run, with their nodes and what they take.
    """

    def __init__(self, count: int) -> None:
        self.names = frozenset(f"n{it}" for it in range(count))
        self.servers: dict[Key, tuple[str, Amounts]] = {}

    def fitting(self, ticket: Ticket) -> list[str]:
        return sorted(it for it in self.names if _has(self.free(it), ticket.requests))

    def possible(self, ticket: Ticket) -> frozenset[str]:
        return self.names if _has(SIZE, ticket.requests) else frozenset()

    def free(self, node: str) -> Amounts:
        left = dict(SIZE)
        for name, amounts in self.servers.values():
            for resource, amount in amounts.items() if name == node else ():
                left[resource] -= amount
        return left

    def unpromised(self, node: str) -> Amounts:
        return self.free(node)  # a promise starts the server at once

    def ends(self, node: str) -> Sequence[KnownEnd]:
        assert node in self.names
        return ()

    def promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        nodes = [it for it in self.fitting(ticket) if it not in kept_off]
        if nodes:
            self.servers[ticket.key] = nodes[0], ticket.requests
        return bool(nodes)


def _has(free: Amounts, needed: Amounts) -> bool:
    return all(free[it] >= amount for it, amount in needed.items())
