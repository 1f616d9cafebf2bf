"""Reservations: promises to pods that the view doesn't show as bound yet.

If N users ask for K GPUs, exactly K get a yes. Between the yes and the binding in the view, no node
counts the promised room; the reservation does.

Once the hub has sent a pod, it can't know that the pod doesn't exist: an answer may be lost, and
the view lags. So the reservation outlasts the start, until the view shows the pod or the API server
says that there is none.
"""

import time
from collections.abc import Callable
from enum import Enum, auto

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.reservations.pending_pods import PendingPods
from gpuspawner.scheduling.contention import Demand, is_certain
from gpuspawner.scheduling.requests import Amounts
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome
from gpuspawner.scheduling.verdicts import Subject, Verdicts

# If a pod starts with any other verdict, something about it is unknown.
_KNOWN = (Outcome.FITS, Outcome.FITS_AFTER_PREEMPTION)

# For a promise whose start never began; every way out of a start ends its reservation.
LIFETIME_SECONDS = 300.0
# For a pod that came and went in one answer of a watch, so the view never showed it.
LEFT_SECONDS = 30.0
# As that, if the pod is known to be gone: the view is only behind by its own delay.
GONE_SECONDS = 2.0


class _Phase(Enum):
    """How far a reservation's start has come."""

    PROMISED = auto()
    """No pod was sent, so none exists."""
    SENT = auto()
    """A pod was sent; only the view can tell whether it exists."""
    AGAIN = auto()
    """An older pod of its name was in the way, or no answer came; the pod will be sent again."""
    LEFT = auto()
    """The start is over, but the view hasn't shown yet what became of its pod."""
    GONE = auto()
    """The pod is gone too, but the view may still show it for a moment, bound to a node."""


_LIFETIMES = {_Phase.LEFT: LEFT_SECONDS, _Phase.GONE: GONE_SECONDS}
_OVER = frozenset(_LIFETIMES)


class Reservation(msgspec.Struct):
    """A promise to one pod.

    Attributes:
        since: When its start last made progress, by ``time.monotonic``.
        unknown: Whether the verdict was unknown, so nothing was promised, but the pod may still
            take room.
        waits: Whether it waits for a node that doesn't exist yet. It counts on present nodes as
            soon as it fits there.
        alone: Whether a pod of this name in the view is the one that was sent, not an older one.
        seen: Whether the view has shown the pod that was sent.
    """

    key: Key
    subject: Subject
    since: float
    unknown: bool
    waits: bool = False
    phase: _Phase = _Phase.PROMISED
    alone: bool = False
    seen: bool = False

    @property
    def is_over(self) -> bool:
        """Whether its start is over, and the view hasn't shown yet what became of the pod."""
        return self.phase in _OVER


class Reservations:
    """All reservations of one hub.

    Args:
        notify: Called when a reservation ends without a change of the view, so others can try.
        lifetime: Seconds after which a promise is given up.
    """

    def __init__(
        self,
        state: ClusterState,
        verdicts: Verdicts,
        notify: Callable[[], None] = lambda: None,
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._notify = notify
        self._lifetime = lifetime
        self._pending = PendingPods(state, verdicts)
        self._reservations: dict[Key, Reservation] = {}

    @property
    def version(self) -> object:
        """Changes with the starts that wait for a node."""
        self.look()
        return frozenset(it.key for it in self._reservations.values() if it.waits)

    def __len__(self) -> int:
        self.look()
        return len(self._reservations)

    def find(self, key: Key) -> Reservation | None:
        """Return the reservation of this pod; None if it has none."""
        self.look()
        return self._reservations.get(key)

    def look(self) -> None:
        """End the reservations that the view makes superfluous; call this when the view changes."""
        now = time.monotonic()
        for reservation in list(self._reservations.values()):
            lifetime = _LIFETIMES.get(reservation.phase, self._lifetime)
            if self._settled(reservation) or now - reservation.since > lifetime:
                del self._reservations[reservation.key]

    def take(self, key: Key, subject: Subject) -> None:
        """Take a reservation for the pod; it replaces one of an earlier start of the same name."""
        unknown = self._is_unknown(subject)
        self._reservations[key] = Reservation(key, subject, time.monotonic(), unknown)

    def take_of_new_node(self, key: Key, subject: Subject) -> None:
        """As `take`, but of a node that can still come."""
        now = time.monotonic()
        self._reservations[key] = Reservation(key, subject, now, unknown=False, waits=True)

    def waiting(self, besides: Key) -> list[Subject]:
        """Return the other pods that wait for a node, and that the view doesn't show yet."""
        return [it.subject for it in self._of_new_nodes(besides) if not self._shows(it.key)]

    def of_new_nodes(self, besides: Key) -> list[Subject]:
        """Return the other pods that wait for a node."""
        return [it.subject for it in self._of_new_nodes(besides)]

    def _of_new_nodes(self, besides: Key) -> list[Reservation]:
        self.look()
        return [it for it in self._reservations.values() if it.waits and it.key != besides]

    def move(self, reservation: Reservation, subject: Subject) -> None:
        """Move the reservation to the pod that KubeSpawner sends."""
        reservation.subject = subject
        reservation.waits = False
        reservation.unknown = self._is_unknown(subject)
        reservation.since = time.monotonic()

    def rename(self, old: Key, new: Key) -> None:
        """Note that the pod will be sent by another name, instead of an earlier one of that."""
        if held := self._reservations.pop(old, None):
            held.key = new
            self._reservations[new] = held

    def send(self, key: Key) -> None:
        """Note that the pod is about to be sent: from now on it may exist."""
        if reservation := self._reservations.get(key):
            reservation.phase, reservation.seen = _Phase.SENT, False
            reservation.alone = not self._shows(key)

    def send_again(self, key: Key) -> None:
        """Note that sending failed: any pod that exists goes before the next try."""
        reservation = self._reservations.get(key)
        if reservation and reservation.phase is _Phase.SENT:
            reservation.phase = _Phase.AGAIN

    def release(self, key: Key) -> None:
        """Note that the start is over; end the reservation if no pod was sent.

        Otherwise it stays until the view shows what became of the pod. Never raises.
        """
        reservation = self._reservations.get(key)
        if reservation is None:
            return
        if reservation.phase is _Phase.PROMISED:
            self.vacate(key)
        else:
            reservation.phase, reservation.since = _Phase.LEFT, time.monotonic()

    def see_out(self, key: Key) -> None:
        """Note that the pod was stopped, if its start is over.

        Its room counts as free only when the view has shown the pod. Otherwise the view could show
        it bound, after somebody else was promised the room.
        """
        reservation = self._reservations.get(key)
        if reservation and reservation.phase is _Phase.LEFT:
            reservation.phase, reservation.since = _Phase.GONE, time.monotonic()

    def vacate(self, key: Key) -> None:
        """End the reservation at once: no pod exists, and none is being created. Never raises."""
        if self._reservations.pop(key, None) is not None:
            self._notify()

    def has_room(self, key: Key, demand: Demand) -> bool:
        """Whether every promise holds wherever the pods land, with this demand as one more.

        The reservation that the pod itself already has doesn't count against it.
        """
        self.look()
        mine = [
            demand,
            *(c for other in self._reservations if other != key and (c := self._demand(other))),
        ]
        everyone = mine + self._pending.demands({key, *self._reservations})
        # Equal demands are the same object, so it is enough to look at one.
        return all(
            is_certain(one, _all_but(one, everyone), self._state.nodes)
            for one in {id(one): one for one in mine}.values()
            if one is demand or (one.nodes is not None and one.touches(demand))
        )

    def promised_on(self, node: str) -> list[Amounts]:
        """Return what each pod takes that may be bound to a node; the view shows it on none yet."""
        demands = (self._demand(key) for key in self._reservations)
        return [it.requests for it in demands if it and (it.nodes is None or node in it.nodes)]

    def _demand(self, key: Key) -> Demand | None:
        reservation = self._reservations[key]
        judge = self._verdicts.demand_anywhere if reservation.unknown else self._verdicts.demand
        return judge(reservation.subject)

    def _is_unknown(self, subject: Subject) -> bool:
        return self._verdicts.verdict(subject).outcome not in _KNOWN

    def _settled(self, reservation: Reservation) -> bool:
        """Whether the view itself now shows what became of the pod."""
        if reservation.phase in (_Phase.PROMISED, _Phase.AGAIN):
            return False
        place, over = "/".join(reservation.key), reservation.is_over
        waiting, runs = self._state.unbound_pods.get(place), self._runs(reservation.key)
        reservation.alone = reservation.alone or not self._shows(reservation.key)
        if place in self._state.pods:
            return over or (runs and reservation.alone)
        if waiting is None:
            return reservation.seen  # it is gone
        if not reservation.alone:
            return over
        reservation.seen = True
        # Once its start is over, it is a pending pod. The evaluation counts a nominated node. An
        # unknown verdict may stay unknown for long.
        return over or reservation.unknown or bool(waiting.status.nominated_node_name)

    def _shows(self, key: Key) -> bool:
        return "/".join(key) in self._state.unbound_pods or self._runs(key)

    def _runs(self, key: Key) -> bool:
        pod = self._state.pods.get("/".join(key))
        return pod is not None and not pod.terminating


def _all_but(one: Demand, everyone: list[Demand]) -> list[Demand]:
    place = next(i for i, other in enumerate(everyone) if other is one)
    return everyone[:place] + everyone[place + 1 :]
