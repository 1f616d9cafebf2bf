"""What is promised to each start, and when that ends: room on a node, and a part of limits.

If N users ask for K GPUs, exactly K get a yes. Between the yes and the binding in the view, no node
counts the promised room; the reservation does. Limits are those of policies: what a start takes of
them counts from its grant on, also while the view can't be trusted and no room is promised.

Once the hub has sent a pod, it can't know that the pod doesn't exist: an answer may be lost, and
watches lag. So a promise outlasts its start, and each part ends by what its own watch shows:

- The room ends when the live view shows the pod on a node, or when the pod was seen and is gone. If
  the start is over, it also ends when the view shows the pod at all, or after `LEFT_SECONDS`, or
  `GONE_SECONDS` after the pod was stopped.
- The part of limits ends after its start, when the watch that counts servers shows the pod, or
  after `LEFT_SECONDS`. During the start it stays: the pod that is shown may be an older one.

Both end at once if no pod was sent, or if the API server says that there is none.
"""

import math
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.reservations.pending_pods import PendingPods
from gpuspawner.scheduling.contention import Demand, all_keep_room
from gpuspawner.scheduling.requests import Amounts
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome
from gpuspawner.scheduling.verdicts import Subject, Verdicts

# If a pod starts with any other verdict, something about it is unknown.
_KNOWN = (Outcome.FITS, Outcome.FITS_AFTER_PREEMPTION)

# For room whose start never began; every way out of a start ends its promise.
LIFETIME_SECONDS = 300.0
LEFT_SECONDS = 120.0
"""How long a promise lasts after the end of a start whose pod no watch ever shows.

The pod may have come and gone in one answer of a watch. But this is longer than a watch may be
silent before nothing is known any more (see `Backoff` and `STALE_AFTER`): until then, a broken
connection looks as if the pod weren't there.
"""
# As that, if the pod is known to be gone: the view is only behind by its own delay.
GONE_SECONDS = 2.0


class Phase(Enum):
    """How far a start has come."""

    PROMISED = auto()
    """No pod was sent, so none exists."""
    SENT = auto()
    """A pod was sent; only a watch can tell whether it exists."""
    AGAIN = auto()
    """An older pod of its name was in the way, or no answer came; the pod will be sent again."""
    LEFT = auto()
    """The start is over, but no watch has shown yet what became of its pod."""
    GONE = auto()
    """The pod is gone too, but the view may still show it for a moment, bound to a node."""


_LIFETIMES = {Phase.LEFT: LEFT_SECONDS, Phase.GONE: GONE_SECONDS}


class Reservation(msgspec.Struct):
    """Room that is promised to one pod.

    Attributes:
        unknown: Whether the verdict was unknown, so nothing was promised, but the pod may still
            take room.
        waits: Whether it waits for a node that doesn't exist yet. It counts on present nodes as
            soon as it fits there.
        alone: Whether a pod of this name in the view is the one that was sent, not an older one.
        seen: Whether the view has shown the pod that was sent.
        judged: What it takes, and by which state: the line asks for each of thousands of nodes.
    """

    subject: Subject
    unknown: bool
    waits: bool = False
    alone: bool = False
    seen: bool = False
    judged: tuple[object, Demand | None] = (None, None)


class Promise(msgspec.Struct):
    """What is promised to one start.

    Attributes:
        since: When the start last made progress, by ``time.monotonic``.
        room: None if it has none, or none any more.
        charge: What it takes of limits, as `Counting` reads it; None if that is nothing.
        older: The uid of the pod of its name that was there when the new pod was sent.
    """

    since: float
    phase: Phase = Phase.PROMISED
    room: Reservation | None = None
    charge: Any = None
    older: str = ""


class Counting:
    """Counts servers toward limits, by a watch of its own; here, none. Policies bring their own."""

    def count(self, key: Key, charge: Any) -> None:
        """Count what a start takes whose pod isn't shown; with None, nothing any more."""

    def shown(self, key: Key) -> str:  # noqa: ARG002, for those that count
        """Return the uid of the pod of this name; "" if none is shown."""
        return ""

    def is_current(self) -> bool:
        """Whether every pod that exists is shown at this moment."""
        return True


class Reservations:
    """The promises to the starts of one hub, by the namespaces and names of their pods.

    Args:
        notify: Called when room becomes free without a change of the view, so others can try.

    Attributes:
        counting: Counts what starts take of limits.
    """

    def __init__(
        self, state: ClusterState, verdicts: Verdicts, notify: Callable[[], None] = lambda: None
    ) -> None:
        self.counting = Counting()
        self._state = state
        self._verdicts = verdicts
        self._notify = notify
        self._pending = PendingPods(state, verdicts)
        self._starts: dict[Key, Promise] = {}
        self._left: dict[Key, Promise] = {}
        """What starts have left that are over. It counts for as long as the next one has nothing
        in its place, and until that one sends its pod."""

    def __len__(self) -> int:
        self.look()
        return len(self._starts.keys() | self._left.keys())

    def look(self) -> None:
        """End what is over by what the watches show; call this when one of them has changed."""
        for promises in (self._starts, self._left):
            for key, promise in list(promises.items()):
                if promise.room and self._has_settled(key, promise, promise.room):
                    promise.room = None
                if promise.charge is not None and self._is_counted(key, promise):
                    promise.charge = None
                    self._count(key)
                if promise.room is None and promise.charge is None:
                    del promises[key]

    # What a start is promised

    def take(self, key: Key, subject: Subject) -> None:
        """Promise room to the pod, instead of any that its start was promised before."""
        unknown = self._verdicts.verdict(subject).outcome not in _KNOWN
        self._start(key).room = Reservation(subject, unknown)

    def take_of_new_node(self, key: Key, subject: Subject) -> None:
        """As `take`, but of a node that can still come."""
        self._start(key).room = Reservation(subject, unknown=False, waits=True)

    def charge(self, key: Key, charge: Any) -> None:
        """Count this toward limits, instead of what its start was charged before."""
        self._start(key).charge = charge
        self._count(key)

    def hold(self, key: Key) -> None:
        """Keep what a start is promised until it makes progress, however long that takes."""
        if promise := self._starts.get(key):
            promise.since = math.inf

    def leave(self, key: Key, charge: Any) -> None:
        """Note a server whose pod an earlier hub may have sent, until the pods are known.

        It counts by its pod alone.
        """
        self._left.setdefault(key, Promise(-math.inf, Phase.LEFT, charge=charge))

    # What becomes of the start

    def rename(self, old: Key, new: Key) -> None:
        """Note that the pod will be sent by another name; what earlier starts have left stays."""
        promise = self._starts.get(old)
        if promise is None or old == new:
            return
        room = msgspec.structs.replace(promise.room) if promise.room else None
        self._starts[new] = Promise(time.monotonic(), room=room, charge=promise.charge)
        self._count(new)
        self.end(old)

    def send(self, key: Key) -> None:
        """Note that the pod is about to be sent, instead of any earlier one: now it may exist."""
        left = self._left.pop(key, None)
        promise = self._starts.get(key) or left
        if promise is None:
            return
        if left is not None:
            promise.room = promise.room or left.room
            promise.charge = left.charge if promise.charge is None else promise.charge
        self._starts[key] = promise
        promise.since, promise.phase = time.monotonic(), Phase.SENT
        promise.older = self.counting.shown(key)
        if room := promise.room:
            room.seen, room.alone = False, not self._shows(key)

    def send_again(self, key: Key) -> None:
        """Note that sending failed: any pod that exists goes before the next try."""
        promise = self._starts.get(key)
        if promise and promise.phase is Phase.SENT:
            promise.phase = Phase.AGAIN

    def release(self, key: Key) -> None:
        """Take the room back from a start that goes on, or may: it needs none. Never raises.

        A pod that was sent may still take room until the view shows it.
        """
        promise = self._starts.get(key)
        if promise is None or promise.room is None:
            return
        if promise.phase is Phase.PROMISED:
            promise.room = None
            self.look()
            self._notify()
        elif promise.phase is Phase.SENT:
            promise.room.unknown = True

    def end(self, key: Key) -> None:
        """Note that the start is over; if no pod was sent, nothing is left of it. Never raises.

        Otherwise its promise stays until the watches show what became of the pod.
        """
        promise = self._starts.pop(key, None)
        if promise is None:
            return
        if promise.phase is Phase.PROMISED:
            self._count(key)
            if promise.room:
                self._notify()
        else:
            promise.phase, promise.since = Phase.LEFT, time.monotonic()
            self._left[key] = promise
            self.look()

    def see_out(self, key: Key) -> None:
        """Note that the pod was stopped, if its start is over.

        Its room counts as free only when the view has shown the pod. Otherwise the view could show
        it bound, after somebody else was promised the room.
        """
        left = self._left.get(key)
        if left and left.phase is Phase.LEFT:
            left.phase, left.since, left.charge = Phase.GONE, time.monotonic(), None
            self._count(key)

    def vacate(self, key: Key) -> None:
        """End the promise at once: no pod exists, and none is being created. Never raises."""
        ended = self._starts.pop(key, None), self._left.pop(key, None)
        self._count(key)
        if any(it and it.room for it in ended):
            self._notify()

    # What others ask

    @property
    def version(self) -> object:
        """Changes with the starts that wait for a node."""
        self.look()
        return frozenset(key for key, it in self._rooms().items() if it.waits)

    def find(self, key: Key) -> Reservation | None:
        """Return the room of this pod; None if it has none."""
        self.look()
        return self._rooms().get(key)

    def is_promised(self, key: Key) -> bool:
        """Whether a start under way has room for this pod."""
        self.look()
        promise = self._starts.get(key)
        return promise is not None and promise.room is not None

    def sent(self, key: Key) -> tuple[Any, str]:
        """Return what the last start was charged that has sent a pod of this name, and `older`."""
        promise = self._starts.get(key)
        if promise is None or promise.phase is Phase.PROMISED:
            promise = self._left.get(key)
        return (promise.charge, promise.older) if promise else (None, "")

    def waiting(self, besides: Key) -> list[Subject]:
        """Return the other pods that wait for a node, and that the view doesn't show yet."""
        return [it for key, it in self.of_new_nodes(besides).items() if not self._shows(key)]

    def unshown(self) -> list[Subject]:
        """Return the pods with room that the view doesn't show yet."""
        self.look()
        return [it.subject for key, it in self._rooms().items() if not self._shows(key)]

    def of_new_nodes(self, besides: Key) -> dict[Key, Subject]:
        """Return the other pods that wait for a node."""
        self.look()
        return {key: it.subject for key, it in self._rooms().items() if it.waits and key != besides}

    def has_room(self, key: Key, demand: Demand) -> bool:
        """Whether every promise holds wherever the pods land, with this demand as one more.

        The room that the pod itself already has doesn't count against it.
        """
        promised, pending = self._others(key)
        if any(it.below is not None for it in (demand, *promised, *pending)):
            pending += self._pending.followers()
        return all_keep_room(demand, promised, pending, self._state.nodes)

    def has_volumes(self, key: Key, demand: Demand) -> bool:
        """Whether no other pod may soon have a claim or a volume that this one needs."""
        if not demand.alone and not demand.volumes:
            return True
        promised, pending = self._others(key)
        others = promised + pending
        return demand.has_volumes(others) and not any(map(demand.excludes, others))

    def promised(self) -> list[Demand]:
        """Return what each pod takes that may be bound soon; the view shows it on no node yet."""
        return [it for it in map(self._demand, self._rooms().values()) if it]

    def promised_on(self, node: str) -> list[Amounts]:
        """As `promised`, of the pods that may be bound to a node."""
        return [it.requests for it in self.promised() if it.nodes is None or node in it.nodes]

    def _start(self, key: Key) -> Promise:
        """Return the promise of the start under way; the first call makes it."""
        promise = self._starts.setdefault(key, Promise(0.0))
        promise.since = time.monotonic()
        return promise

    def _others(self, key: Key) -> tuple[list[Demand], list[Demand]]:
        """Return what other pods may take: those with room, and pending ones."""
        self.look()
        rooms = self._rooms()
        others = (self._demand(it) for other, it in rooms.items() if other != key)
        return [it for it in others if it], self._pending.demands({key, *rooms})

    def _rooms(self) -> dict[Key, Reservation]:
        """Return the room of each pod: of the start under way, or else what an earlier one left."""
        promises = (*self._left.items(), *self._starts.items())
        return {key: it.room for key, it in promises if it.room}

    def _count(self, key: Key) -> None:
        """Count what the start under way takes of limits, or else what an earlier one left."""
        charges = (it.charge for it in (self._starts.get(key), self._left.get(key)) if it)
        self.counting.count(key, next((it for it in charges if it is not None), None))

    def _demand(self, room: Reservation) -> Demand | None:
        moment = self._state.version, room.unknown
        if room.judged[0] != moment:
            judge = self._verdicts.demand_anywhere if room.unknown else self._verdicts.demand
            room.judged = moment, judge(room.subject)
        return room.judged[1]

    def _has_settled(self, key: Key, promise: Promise, room: Reservation) -> bool:
        """Whether the view itself now shows what became of the pod, or the room's time is up."""
        if time.monotonic() - promise.since > _LIFETIMES.get(promise.phase, LIFETIME_SECONDS):
            return True
        if promise.phase in (Phase.PROMISED, Phase.AGAIN):
            return False
        place, over = "/".join(key), promise.phase in _LIFETIMES
        waiting, bound = self._state.unbound_pods.get(place), self._state.pods.find(place)
        room.alone = room.alone or not self._shows(key)
        if bound is not None:
            return over or (room.alone and not bound.terminating)
        if waiting is None:
            return room.seen  # it is gone
        if not room.alone:
            return over
        room.seen = True
        # Once its start is over, it is a pending pod. The evaluation counts a nominated node. An
        # unknown verdict may stay unknown for long.
        return over or room.unknown or bool(waiting.status.nominated_node_name)

    def _is_counted(self, key: Key, promise: Promise) -> bool:
        """Whether the start is over, and its pod counts itself, or surely doesn't exist."""
        if promise.phase not in _LIFETIMES:
            return False
        if (uid := self.counting.shown(key)) and uid != promise.older:
            return True
        is_old = time.monotonic() - promise.since > LEFT_SECONDS
        return is_old and self.counting.is_current()

    def _shows(self, key: Key) -> bool:
        place = "/".join(key)
        bound = self._state.pods.find(place)
        return place in self._state.unbound_pods or (bound is not None and not bound.terminating)
