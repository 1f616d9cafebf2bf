"""What the line asks about nodes."""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from gpuspawner.line.line import Ticket
from gpuspawner.scheduling.requests import Amounts


class KnownEnd(msgspec.Struct, frozen=True):
    """The end of a pod that has a deadline: after how many seconds, and what it gives back."""

    seconds: float
    amounts: Amounts


class Room(Protocol):
    """The nodes as they are at this moment."""

    def fitting(self, ticket: Ticket) -> Collection[str]:
        """Return the nodes on which a server fits now, beside everything that was promised."""

    def possible(self, ticket: Ticket) -> frozenset[str]:
        """Return the nodes on which it would fit if other servers ended."""

    def unpromised(self, node: str) -> Amounts:
        """Return what nobody has, nor may get by a promise."""

    def ends(self, node: str) -> Sequence[KnownEnd]:
        """Return the known ends of pods on a node, the first one first."""

    def promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        """Promise room to a server on any node but these; return whether that was possible."""
