"""The tickets of those in line, in their order, by what they wait for; what they ask of nodes."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import msgspec

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Key
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.scheduling.requests import Amounts, is_device

# A place in line.

Precedence = tuple[float, float, Key]
"""The smaller, the further ahead."""


Arrival = tuple[float, Key]
"""The order within a lane."""
_Group = tuple[Hashable, float]
"""The needs and the weight of tickets."""


class LaneKey(NamedTuple):
    """What tickets of one lane have in common: none of them ever passes another."""

    needs: Hashable
    weight: float
    lifetime: float | None
    shape: Hashable
    is_checked: bool = True


class Ticket(msgspec.Struct, frozen=True):
    """One server that waits for room.

    Attributes:
        person: The id of its owner.
        needs: Equal for servers that fit on the same nodes in the same way, but for their labels
            and priority.
        requests: What its pod takes of a node, by resource.
        since: When it joined, in seconds since the epoch, because it outlasts a hub.
        weight: How much each second of waiting counts; 1 for most people.
        lifetime: Seconds after which its pod ends at the latest; None for no end.
        subject: The pod, for a `Room` that judges nodes by verdicts; the rule never reads it.
        shape: Equal for servers whose labels and priority make no difference. By a higher priority,
            a server may end others' pods, and then it needs no place.
        is_checked: Whether it needs room to start. Else, it only waits until policies allow it.
    """

    key: Key
    person: Hashable
    needs: Hashable
    requests: Mapping[str, int]
    since: float
    weight: float = 1.0
    lifetime: float | None = None
    subject: Any = None
    shape: Hashable = None
    is_checked: bool = True

    @property
    def lane(self) -> LaneKey:
        """The lane that the ticket is in."""
        return LaneKey(self.needs, self.weight, self.lifetime, self.shape, self.is_checked)

    @property
    def arrival(self) -> Arrival:
        """The order within a lane: first in, first out."""
        return self.since, self.key

    @property
    def device(self) -> str | None:
        """The extended resource that it waits for; None if it needs none.

        It is that of its GPUs, and not of the network interfaces beside them, for example; or else
        the one of which it needs most.
        """
        needed = [it for it, amount in self.requests.items() if amount and is_device(it)]
        return max(needed, key=lambda it: (is_gpu(it), self.requests[it], it), default=None)

    @property
    def needs_several(self) -> bool:
        """Whether it needs several devices of one node, so that others can pass it."""
        return self.device is not None and self.requests[self.device] > 1

    def weighted_wait(self, now: float) -> float:
        """Return for how many seconds it has waited, times its weight."""
        return -self.precedence(now)[0]

    def precedence(self, now: float) -> Precedence:
        """The order among all lanes at this moment: the smallest is the first.

        Everybody is first at some time, because everybody's waiting time grows.
        """
        return _precedence(now, self.weight, self.arrival)


def _precedence(now: float, weight: float, arrival: Arrival) -> Precedence:
    since, key = arrival
    return -weight * max(0.0, now - since), since, key


_ARRIVAL = attrgetter("arrival")
Possible = Callable[[Ticket], frozenset[str]]
"""As `Room.possible`."""
_ByNodes = dict[tuple[frozenset[str], float], list[Arrival]]


class Lane:
    """Tickets that wait for the same, first in, first out.

    Attributes:
        present: Those that may be called, in order.
        held_back: The keys of those that aren't called now; they keep their places.
    """

    def __init__(self) -> None:
        self.present: list[Ticket] = []
        self.held_back: set[Key] = set()

    def first_besides(self, key: Key) -> Ticket | None:
        """Return the first that may be called, not counting that of one server; None without."""
        return next((it for it in self.present[:2] if it.key != key), None)


class Line:
    """All tickets."""

    def __init__(self) -> None:
        self.lanes: dict[LaneKey, Lane] = {}
        self._tickets: dict[Key, Ticket] = {}
        self._of: defaultdict[Hashable, dict[Key, Ticket]] = defaultdict(dict)
        self._arrivals: defaultdict[_Group, list[Arrival]] = defaultdict(list)
        """Of all tickets, in order, by needs and weight: there can be as many lanes as tickets."""
        self._by_nodes = UntilChanged[_ByNodes]()
        self._changes = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets.values())

    def find(self, key: Key) -> Ticket | None:
        """Return the ticket of a server; None if it has none."""
        return self._tickets.get(key)

    def places_of(self, person: Hashable) -> int:
        """Return how many tickets a person has."""
        return len(self._of.get(person, ()))

    def join(self, ticket: Ticket) -> None:
        """Add a ticket at the place that its time gives it; it replaces one of the same server."""
        self.leave(ticket.key)
        self._changes += 1
        self._tickets[ticket.key] = ticket
        self._of[ticket.person][ticket.key] = ticket
        insort(self.lanes.setdefault(ticket.lane, Lane()).present, ticket, key=_ARRIVAL)
        insort(self._arrivals[ticket.needs, ticket.weight], ticket.arrival)

    def leave(self, key: Key) -> None:
        """Remove a server's ticket, if it has one."""
        ticket = self._tickets.pop(key, None)
        if ticket is None:
            return
        self._changes += 1
        del self._of[ticket.person][key]
        if not self._of[ticket.person]:
            del self._of[ticket.person]
        lane = self.lanes[ticket.lane]
        if key in lane.held_back:
            lane.held_back.remove(key)
        else:
            _remove(lane.present, ticket)
        if not lane.present and not lane.held_back:
            del self.lanes[ticket.lane]
        arrivals = self._arrivals[ticket.needs, ticket.weight]
        del arrivals[bisect_left(arrivals, ticket.arrival)]
        if not arrivals:
            del self._arrivals[ticket.needs, ticket.weight]

    def is_held_back(self, key: Key) -> bool:
        """Whether a ticket isn't called now."""
        ticket = self._tickets.get(key)
        return ticket is not None and key in self.lanes[ticket.lane].held_back

    def hold_back(self, key: Key) -> None:
        """Call a ticket no more; it keeps its place. Its owner is away, or has reached a limit."""
        ticket = self._tickets.get(key)
        if ticket is not None and not self.is_held_back(key):
            lane = self.lanes[ticket.lane]
            _remove(lane.present, ticket)
            lane.held_back.add(key)

    def let_back(self, key: Key) -> None:
        """Let a ticket be called again."""
        if self.is_held_back(key):
            ticket = self._tickets[key]
            lane = self.lanes[ticket.lane]
            lane.held_back.remove(key)
            insort(lane.present, ticket, key=_ARRIVAL)

    def ahead_of(self, ticket: Ticket, now: float, possible: Possible, version: Hashable) -> int:
        """Return how many are ahead of those who wait for any of the same nodes.

        A ticket's own needs always count, and its owner's other servers never do. Each who waits
        asks this all the time, and the needs of all may differ; so this costs a search for each
        weight and set of nodes. *possible* may say something else for another *version*.
        """
        last, mine = ticket.precedence(now), possible(ticket)

        def is_counted(it: Ticket) -> bool:
            if it.needs == ticket.needs:
                return True
            return not self._nodes((it.needs, it.weight), possible).isdisjoint(mine)

        ahead = sum(
            bisect_left(arrivals, last, key=partial(_precedence, now, weight))
            for weight, arrivals in self._beside(ticket.needs, mine, possible, version)
        )
        same = self.find(ticket.key) or ticket
        own = {**self._of.get(ticket.person, {}), ticket.key: same}.values()
        return ahead - sum(1 for it in own if it.precedence(now) < last and is_counted(it))

    def _beside(
        self, needs: Hashable, mine: frozenset[str], possible: Possible, version: Hashable
    ) -> Iterator[tuple[float, list[Arrival]]]:
        """Yield, by weight, the arrivals of those who need the same, or any of the same nodes."""
        merged = self._by_nodes.of((self._changes, version), (), partial(self._merged, possible))
        for (nodes, weight), arrivals in merged.items():
            if not nodes.isdisjoint(mine):
                yield weight, arrivals
        for weight in {weight for _, weight in merged}:
            group = needs, weight
            if group in self._arrivals and self._nodes(group, possible).isdisjoint(mine):
                yield weight, self._arrivals[group]

    def _merged(self, possible: Possible) -> _ByNodes:
        """Return all arrivals, in order, by the nodes that are possible and by weight."""
        merged: _ByNodes = defaultdict(list)
        for group, arrivals in self._arrivals.items():
            merged[self._nodes(group, possible), group[1]] += arrivals
        for them in merged.values():
            them.sort()
        return merged

    def _nodes(self, group: _Group, possible: Possible) -> frozenset[str]:
        return possible(self._tickets[self._arrivals[group][0][1]])


def _remove(tickets: list[Ticket], ticket: Ticket) -> None:
    del tickets[bisect_right(tickets, ticket.arrival, key=_ARRIVAL) - 1]


class KnownEnd(msgspec.Struct, frozen=True):
    """The end of a pod that has a deadline: after how many seconds, and what it gives back."""

    seconds: float
    amounts: Amounts


class Room(Protocol):
    """The nodes as they are at this moment."""

    def fitting(self, ticket: Ticket) -> Collection[str]:
        """Return the nodes on which a server fits now, beside everything that was promised."""

    def possible(self, ticket: Ticket) -> frozenset[str]:
        """Return the nodes on which it would fit if other servers there ended."""

    def unpromised(self, node: str) -> Amounts:
        """Return what nobody has, nor may get by a promise."""

    def ends(self, node: str) -> Sequence[KnownEnd]:
        """Return the known ends of pods on a node, the first one first."""

    def promise(self, ticket: Ticket, kept_off: frozenset[str]) -> bool:
        """Promise room to a server on any node but these; return whether that was possible."""
