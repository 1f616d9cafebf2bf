"""Seats: promises to pods that the view does not show as bound yet.

N people, K GPUs: exactly K are told yes. Between a yes and the binding that the view shows, the
room is taken without being counted anywhere; a seat stands for it. Nothing here waits; the rule
for promising in spite of seats is in `gpuspawner.preflight.contention`.
"""

import itertools
import time
from dataclasses import dataclass

from gpuspawner.preflight.contention import Claim, is_certain
from gpuspawner.preflight.judge import Judge, Subject
from gpuspawner.preflight.strangers import Key, Strangers
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome

# A start in spite of any other verdict is one about which something is not known.
_KNOWN = (Outcome.FITS, Outcome.FITS_AFTER_PREEMPTION)

# A start that ends releases its seat; this is for one that was promised and never began.
LIFETIME_SECONDS = 300.0


@dataclass(slots=True)
class Seat:
    """A promise to one pod.

    Attributes:
        key: Whose it is.
        attempt: Which try of this name it is; grows with every seat taken.
        subject: What was promised to.
        taken: When, by ``time.monotonic``.
        unknown: Whether the verdict was unknown, so that nothing was promised but room may be
            taken all the same.
        alone: Whether no older pod of this name is in the way of seeing the new one bound.
    """

    key: Key
    attempt: int
    subject: Subject
    taken: float
    unknown: bool
    alone: bool


class Seats:
    """All seats of one hub.

    Args:
        state: What is known of the cluster; read only.
        judge: Evaluates pods against it.
        lifetime: Seconds after which a seat is given up.
    """

    def __init__(
        self, state: ClusterState, judge: Judge, lifetime: float = LIFETIME_SECONDS
    ) -> None:
        self._state = state
        self._judge = judge
        self._lifetime = lifetime
        self._strangers = Strangers(state, judge)
        self._seats: dict[Key, Seat] = {}
        self._attempts = itertools.count(1)

    def __len__(self) -> int:
        self._drop_settled()
        return len(self._seats)

    def find(self, key: Key) -> Seat | None:
        """The seat of this pod, if it has one."""
        self._drop_settled()
        return self._seats.get(key)

    def take(self, key: Key, subject: Subject) -> Seat:
        """Promise to the pod; a seat of an earlier attempt of the same name ends."""
        seat = Seat(
            key,
            next(self._attempts),
            subject,
            time.monotonic(),
            unknown=self._is_unknown(subject),
            alone=not self._bound(key),
        )
        self._seats[key] = seat
        return seat

    def move(self, seat: Seat, subject: Subject) -> None:
        """Let the seat stand for this pod, the one that is really sent."""
        seat.subject = subject
        seat.unknown = self._is_unknown(subject)
        seat.taken = time.monotonic()

    def release(self, key: Key, attempt: int | None = None) -> bool:
        """End a seat: of this attempt, or whichever there is. Whether there was one."""
        seat = self._seats.get(key)
        if seat is None or (attempt is not None and attempt != seat.attempt):
            return False
        del self._seats[key]
        return True

    def has_room(self, key: Key, claim: Claim) -> bool:
        """Whether promising this claim too keeps every promise, wherever the pods land.

        Args:
            key: Whose claim it is; what it holds already is not counted against it.
            claim: What it would take.
        """
        self._drop_settled()
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

    def _drop_settled(self) -> None:
        now = time.monotonic()
        for seat in list(self._seats.values()):
            bound = self._bound(seat.key)
            settled = self._settled(seat, bound=bound)
            seat.alone = seat.alone or not bound
            if settled or now - seat.taken > self._lifetime:
                del self._seats[seat.key]

    def _settled(self, seat: Seat, *, bound: bool) -> bool:
        """Whether the view itself shows what the seat stood for."""
        if bound and seat.alone:
            return True
        waiting = self._state.unbound_pods.get("/".join(seat.key))
        # A nominated node is counted by the evaluation; what is unknown stays so, perhaps for long.
        return waiting is not None and (seat.unknown or bool(waiting.status.nominated_node_name))

    def _bound(self, key: Key) -> bool:
        """Whether a pod of this name is bound and not about to go."""
        pod = self._state.pods.get("/".join(key))
        return pod is not None and not pod.terminating


def _all_but(one: Claim, everyone: list[Claim]) -> list[Claim]:
    place = next(i for i, other in enumerate(everyone) if other is one)
    return everyone[:place] + everyone[place + 1 :]
