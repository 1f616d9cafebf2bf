"""Reservations: promises to pods that the view does not show as bound yet.

N people, K GPUs: exactly K get a yes. Between a yes and the binding in the view, the room is
taken, but no node counts it; the reservation does. Nothing here waits. The rule for promising room
beside other reservations is in `gpuspawner.preflight.contention`.

Once a pod has been sent to the API server, the hub can't know that it doesn't exist: an answer may
be lost, and the view lags. So the reservation outlasts the start, until the view shows the pod or
the API server says that there is none.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from gpuspawner.preflight.contention import Demand, is_certain
from gpuspawner.preflight.pending_pods import Key, PendingPods
from gpuspawner.preflight.verdicts import Subject, Verdicts
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome

# A start in spite of any other verdict is one about which something is not known.
_KNOWN = (Outcome.FITS, Outcome.FITS_AFTER_PREEMPTION)

# Every way out of a start ends its reservation; this is for a promise whose start never began.
LIFETIME_SECONDS = 300.0
# And this for a pod that came and went within one answer of a watch, and was never in view.
LEFT_SECONDS = 30.0


class Phase(Enum):
    """How far the start has come that a reservation belongs to."""

    PROMISED = auto()
    """No pod was sent, so there is none."""
    SENT = auto()
    """A pod was sent; whether there is one yet, only the view can tell."""
    AGAIN = auto()
    """It was not made, an older pod of its name being in the way, and will be sent again."""
    LEFT = auto()
    """The start is over, and the view has not shown what became of its pod."""


@dataclass(slots=True)
class Reservation:
    """A promise to one pod.

    Attributes:
        key: Whose it is.
        subject: What was promised to.
        since: When its start last went on, by ``time.monotonic``.
        unknown: Whether the verdict was unknown, so that nothing was promised but room may be
            taken all the same.
        phase: How far its start has come.
        alone: Whether a pod of this name in the view is the one that was sent, and no older one.
        seen: Whether the view has shown the pod that was sent.
    """

    key: Key
    subject: Subject
    since: float
    unknown: bool
    phase: Phase = Phase.PROMISED
    alone: bool = False
    seen: bool = False


class Reservations:
    """All reservations of one hub.

    Args:
        state: What is known of the cluster; read only.
        verdicts: Evaluates pods against it.
        notify: Called when a reservation ends otherwise than by the view, so that others may try.
        lifetime: Seconds after which a reservation is given up.
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

    def __len__(self) -> int:
        self.look()
        return len(self._reservations)

    def find(self, key: Key) -> Reservation | None:
        """The reservation of this pod, if it has one."""
        self.look()
        return self._reservations.get(key)

    def look(self) -> None:
        """End the reservations that the view has made superfluous; to be called when it changes."""
        now = time.monotonic()
        for reservation in list(self._reservations.values()):
            lifetime = LEFT_SECONDS if reservation.phase is Phase.LEFT else self._lifetime
            if self._settled(reservation) or now - reservation.since > lifetime:
                del self._reservations[reservation.key]

    def take(self, key: Key, subject: Subject) -> None:
        """Promise to the pod; a reservation of an earlier start of the same name ends."""
        unknown = self._is_unknown(subject)
        self._reservations[key] = Reservation(key, subject, time.monotonic(), unknown)

    def move(self, reservation: Reservation, subject: Subject) -> None:
        """Let the reservation stand for this pod, the one that is really sent."""
        reservation.subject = subject
        reservation.unknown = self._is_unknown(subject)
        reservation.since = time.monotonic()

    def send(self, key: Key) -> None:
        """The pod is about to be sent: from now on there may be one."""
        if (reservation := self._reservations.get(key)) is not None:
            reservation.phase, reservation.alone, reservation.seen = (
                Phase.SENT,
                not self._shows(key),
                False,
            )

    def send_again(self, key: Key) -> None:
        """The pod was not made, or no answer came: what there is of it goes before the next try."""
        if (
            reservation := self._reservations.get(key)
        ) is not None and reservation.phase is Phase.SENT:
            reservation.phase = Phase.AGAIN

    def release(self, key: Key) -> None:
        """The start is over: end the reservation if no pod was sent.

        Otherwise it stays until the view shows what became of the pod. Never raises, and does
        nothing the second time.
        """
        reservation = self._reservations.get(key)
        if reservation is None:
            return
        if reservation.phase is Phase.PROMISED:
            self.vacate(key)
        else:
            reservation.phase, reservation.since = Phase.LEFT, time.monotonic()

    def see_out(self, key: Key) -> None:
        """The pod has been stopped: what a start that is over has left of its reservation ends."""
        if (
            reservation := self._reservations.get(key)
        ) is not None and reservation.phase is Phase.LEFT:
            self.vacate(key)

    def vacate(self, key: Key) -> None:
        """End the reservation at once: there is no pod, and none is on its way. Never raises."""
        if self._reservations.pop(key, None) is not None:
            self._notify()

    def has_room(self, key: Key, demand: Demand) -> bool:
        """Whether promising this demand too keeps every promise, wherever the pods land.

        Args:
            key: Whose demand it is; what it holds already is not counted against it.
            demand: What it would take.
        """
        self.look()
        mine = [
            demand,
            *(c for other in self._reservations if other != key and (c := self._demand(other))),
        ]
        everyone = mine + self._pending.demands({key, *self._reservations})
        # Of equal demands, which are one object, one speaks for all.
        return all(
            is_certain(one, _all_but(one, everyone), self._state.nodes)
            for one in {id(one): one for one in mine}.values()
            if one is demand or (one.nodes is not None and one.touches(demand))
        )

    def _demand(self, key: Key) -> Demand | None:
        reservation = self._reservations[key]
        judge = self._verdicts.demand_anywhere if reservation.unknown else self._verdicts.demand
        return judge(reservation.subject)

    def _is_unknown(self, subject: Subject) -> bool:
        return self._verdicts.verdict(subject).outcome not in _KNOWN

    def _settled(self, reservation: Reservation) -> bool:
        """Whether the view itself shows what the reservation stood for."""
        if reservation.phase in (Phase.PROMISED, Phase.AGAIN):
            return False
        place, over = "/".join(reservation.key), reservation.phase is Phase.LEFT
        waiting, runs = self._state.unbound_pods.get(place), self._runs(reservation.key)
        reservation.alone = reservation.alone or not self._shows(reservation.key)
        if place in self._state.pods:
            return over or (runs and reservation.alone)
        if waiting is None:
            return reservation.seen  # it is gone
        if not reservation.alone:
            return over
        reservation.seen = True
        # Once its start is over it is a pending pod; a nominated node is counted by the evaluation;
        # what is unknown stays so, perhaps for long.
        return over or reservation.unknown or bool(waiting.status.nominated_node_name)

    def _shows(self, key: Key) -> bool:
        """Whether the view shows a pod of this name that waits for a node or runs."""
        return "/".join(key) in self._state.unbound_pods or self._runs(key)

    def _runs(self, key: Key) -> bool:
        """Whether the view shows a pod of this name on a node, and not about to go."""
        pod = self._state.pods.get("/".join(key))
        return pod is not None and not pod.terminating


def _all_but(one: Demand, everyone: list[Demand]) -> list[Demand]:
    place = next(i for i, other in enumerate(everyone) if other is one)
    return everyone[:place] + everyone[place + 1 :]
