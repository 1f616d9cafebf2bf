"""Seats: promises to pods that the view does not show as bound yet.

N people, K GPUs: exactly K are told yes. Between a yes and the binding that the view shows, the
room is taken without being counted anywhere; a seat stands for it. Nothing here waits; the rule
for promising in spite of seats is in `gpuspawner.preflight.contention`.

From the moment in which a pod is sent to the API server nobody here can say that there is none: an
answer may be lost, and the view lags. So the seat of such a pod outlasts its start, until the view
shows the pod or the API server says that there is none.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from gpuspawner.preflight.contention import Claim, is_certain
from gpuspawner.preflight.judge import Judge, Subject
from gpuspawner.preflight.strangers import Key, Strangers
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome

# A start in spite of any other verdict is one about which something is not known.
_KNOWN = (Outcome.FITS, Outcome.FITS_AFTER_PREEMPTION)

# Every way out of a start ends its seat; this is for a promise whose start never began.
LIFETIME_SECONDS = 300.0
# And this for a pod that came and went within one answer of a watch, and was never in view.
LEFT_SECONDS = 30.0


class Phase(Enum):
    """How far the start has come that a seat belongs to."""

    PROMISED = auto()
    """No pod was sent, so there is none."""
    SENT = auto()
    """A pod was sent; whether there is one yet, only the view can tell."""
    AGAIN = auto()
    """It was not made, an older pod of its name being in the way, and will be sent again."""
    LEFT = auto()
    """The start is over, and the view has not shown what became of its pod."""


@dataclass(slots=True)
class Seat:
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


class Seats:
    """All seats of one hub.

    Args:
        state: What is known of the cluster; read only.
        judge: Evaluates pods against it.
        notify: Called when a seat ends otherwise than by the view, so that others may try.
        lifetime: Seconds after which a seat is given up.
    """

    def __init__(
        self,
        state: ClusterState,
        judge: Judge,
        notify: Callable[[], None] = lambda: None,
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        self._state = state
        self._judge = judge
        self._notify = notify
        self._lifetime = lifetime
        self._strangers = Strangers(state, judge)
        self._seats: dict[Key, Seat] = {}

    def __len__(self) -> int:
        self.look()
        return len(self._seats)

    def find(self, key: Key) -> Seat | None:
        """The seat of this pod, if it has one."""
        self.look()
        return self._seats.get(key)

    def look(self) -> None:
        """End the seats that the view has made superfluous; to be called when it changes."""
        now = time.monotonic()
        for seat in list(self._seats.values()):
            lifetime = LEFT_SECONDS if seat.phase is Phase.LEFT else self._lifetime
            if self._settled(seat) or now - seat.since > lifetime:
                del self._seats[seat.key]

    def take(self, key: Key, subject: Subject) -> None:
        """Promise to the pod; a seat of an earlier start of the same name ends."""
        unknown = self._is_unknown(subject)
        self._seats[key] = Seat(key, subject, time.monotonic(), unknown)

    def move(self, seat: Seat, subject: Subject) -> None:
        """Let the seat stand for this pod, the one that is really sent."""
        seat.subject = subject
        seat.unknown = self._is_unknown(subject)
        seat.since = time.monotonic()

    def send(self, key: Key) -> None:
        """The pod is about to be sent: from now on there may be one."""
        if (seat := self._seats.get(key)) is not None:
            seat.phase, seat.alone, seat.seen = Phase.SENT, not self._shows(key), False

    def send_again(self, key: Key) -> None:
        """The pod was not made, or no answer came: what there is of it goes before the next try."""
        if (seat := self._seats.get(key)) is not None and seat.phase is Phase.SENT:
            seat.phase = Phase.AGAIN

    def release(self, key: Key) -> None:
        """The start is over: the seat ends, or stays until the view shows what became of the pod.

        Never raises, and does nothing the second time.
        """
        seat = self._seats.get(key)
        if seat is None:
            return
        if seat.phase is Phase.PROMISED:
            self.vacate(key)
        else:
            seat.phase, seat.since = Phase.LEFT, time.monotonic()

    def see_out(self, key: Key) -> None:
        """The pod has been stopped: what a start that is over has left of its seat ends."""
        if (seat := self._seats.get(key)) is not None and seat.phase is Phase.LEFT:
            self.vacate(key)

    def vacate(self, key: Key) -> None:
        """End the seat at once: there is no pod, and none is on its way. Never raises."""
        if self._seats.pop(key, None) is not None:
            self._notify()

    def has_room(self, key: Key, claim: Claim) -> bool:
        """Whether promising this claim too keeps every promise, wherever the pods land.

        Args:
            key: Whose claim it is; what it holds already is not counted against it.
            claim: What it would take.
        """
        self.look()
        mine = [claim, *(c for other in self._seats if other != key and (c := self._claim(other)))]
        everyone = mine + self._strangers.claims({key, *self._seats})
        # Of equal claims, which are one object, one speaks for all.
        return all(
            is_certain(one, _all_but(one, everyone), self._state.nodes)
            for one in {id(one): one for one in mine}.values()
            if one is claim or (one.nodes is not None and one.touches(claim))
        )

    def _claim(self, key: Key) -> Claim | None:
        seat = self._seats[key]
        judge = self._judge.claim_anywhere if seat.unknown else self._judge.claim
        return judge(seat.subject)

    def _is_unknown(self, subject: Subject) -> bool:
        return self._judge.verdict(subject).outcome not in _KNOWN

    def _settled(self, seat: Seat) -> bool:
        """Whether the view itself shows what the seat stood for."""
        if seat.phase in (Phase.PROMISED, Phase.AGAIN):
            return False
        place, over = "/".join(seat.key), seat.phase is Phase.LEFT
        waiting, runs = self._state.unbound_pods.get(place), self._runs(seat.key)
        seat.alone = seat.alone or not self._shows(seat.key)
        if place in self._state.pods:
            return over or (runs and seat.alone)
        if waiting is None:
            return seat.seen  # it is gone
        if not seat.alone:
            return over
        seat.seen = True
        # Once its start is over it is a stranger; a nominated node is counted by the evaluation;
        # what is unknown stays so, perhaps for long.
        return over or seat.unknown or bool(waiting.status.nominated_node_name)

    def _shows(self, key: Key) -> bool:
        """Whether the view shows a pod of this name that waits for a node or runs."""
        return "/".join(key) in self._state.unbound_pods or self._runs(key)

    def _runs(self, key: Key) -> bool:
        """Whether the view shows a pod of this name on a node, and not about to go."""
        pod = self._state.pods.get("/".join(key))
        return pod is not None and not pod.terminating


def _all_but(one: Claim, everyone: list[Claim]) -> list[Claim]:
    place = next(i for i, other in enumerate(everyone) if other is one)
    return everyone[:place] + everyone[place + 1 :]
