"""A place in line."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import msgspec

Key = tuple[str, str]
"""Namespace and name of the pod of a server."""


Precedence = tuple[float, float, Key]
"""The smaller, the further ahead."""


Arrival = tuple[float, Key]
"""The order within a lane."""


class LaneKey(NamedTuple):
    """What tickets of one lane have in common: none of them ever passes another."""

    needs: Hashable
    weight: float
    lifetime: float | None


class Ticket(msgspec.Struct, frozen=True):
    """One server that waits for room.

    Attributes:
        person: The id of its owner.
        needs: Equal for servers that fit on the same nodes in the same way.
        requests: What its pod takes of a node, by resource.
        since: When it joined, in seconds since the epoch, because it outlasts a hub.
        weight: How much each second of waiting counts; 1 for most people.
        lifetime: Seconds after which its pod ends at the latest; None for no end.
    """

    key: Key
    person: Hashable
    needs: Hashable
    requests: Mapping[str, int]
    since: float
    weight: float = 1.0
    lifetime: float | None = None

    @property
    def lane(self) -> LaneKey:
        """The lane that the ticket is in."""
        return LaneKey(self.needs, self.weight, self.lifetime)

    @property
    def arrival(self) -> Arrival:
        """The order within a lane: first in, first out."""
        return self.since, self.key

    def precedence(self, now: float) -> Precedence:
        """The order among all lanes at this moment: the smallest is the first.

        Waiting time counts by weight. So everybody is first at some time, whatever the weights are.
        """
        return -self.weight * max(0.0, now - self.since), self.since, self.key
