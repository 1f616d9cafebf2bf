"""The preflight: whether a pod would start, before it exists.

Three gates ask, in this order:

- `Preflight.check`, for the form's answer, changes nothing and keeps nothing.
- `Preflight.begin`, before the start, takes a seat in the tick of the verdict.
- `Preflight.confirm`, for the pod that is really sent, judges that pod and moves the seat to it.

`Preflight.release` ends the seat. All is keyed by namespace and pod name, so the gates may run on
different spawner objects, as they do in JupyterHub 6.1 after a failed start.
"""

import time
from collections.abc import Callable, Container

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import Odd
from gpuspawner.policy import Grant
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.deciding import Decider
from gpuspawner.preflight.decision import Alternative, Decision, Start, ViewNotLive
from gpuspawner.preflight.judge import Judge
from gpuspawner.preflight.line import Line, Place
from gpuspawner.preflight.seats import Seats

# A binding is seen within a fraction of a second of the pod's creation; the rest is what a busy hub
# needs to create the pods of a class that starts at once.
PATIENCE_SECONDS = 10.0
FIRST_LIST_SECONDS = 30.0


class Preflight:
    """Decides about pods on the live view of the cluster. One for the whole hub.

    All methods run on the view's event loop.

    Args:
        view: The live view.
        patience: Seconds that `begin` and `confirm` wait for others' pods to be bound.
        first_list: Seconds that `begin` waits for the first list.

    Attributes:
        seats: The promises that the view does not show yet.
    """

    def __init__(
        self,
        view: ClusterView,
        patience: float = PATIENCE_SECONDS,
        first_list: float = FIRST_LIST_SECONDS,
    ) -> None:
        self._view = view
        self._patience = patience
        self._first_list = first_list
        self._judge = Judge(view.state)
        self._decider = Decider(view.state, self._judge)
        self._line = Line(view.wake)
        self.seats = Seats(view.state, self._judge)

    def check(self, ask: Ask) -> Decision:
        """Decide at this moment; nothing is changed, nothing is kept."""
        health = self._view.health()
        if not isinstance(health, Live):
            return Start(ask.grant, (ViewNotLive(health),))
        return self._decider.decide(ask, health.age)

    def alternatives(self, ask: Ask, besides: Container[Grant] = ()) -> tuple[Alternative, ...]:
        """What fits now and is near to what is asked, *besides* some; none without a live view."""
        if not isinstance(self._view.health(), Live):
            return ()
        return self._decider.alternatives(ask, besides)

    def fits(self, ask: Ask) -> bool:
        """Whether a node has room for the pod at this moment."""
        return not isinstance(ask.subject, Odd) and self._decider.fits(ask.subject)

    async def begin(self, ask: Ask) -> Decision:
        """Decide and, for a start, take a seat; waits where others' pods are on their way.

        A refusal is immediate where the pod does not fit even now. Where it fits, but pods that
        were promised a place or wait for the scheduler might take it, it waits in line for the
        view to show where they went, and is refused with ``try-again`` when that takes too long.
        A `Wait` takes no seat: nothing that exists is promised.
        """
        await self._view.first_list(self._first_list)
        with self._line.place() as place:
            return await self._settle(ask, lambda: self._sit(ask, place))

    async def confirm(self, ask: Ask) -> Decision:
        """Decide about the pod that is really sent, its own seat not counted against it.

        A start keeps the seat, now for this pod; any other decision ends it. Without a seat (none
        is taken while the view is not live, or it has ended) one is taken as in `begin`. It never
        waits in line: those who wait there may wait for this very pod.
        """
        if self.seats.find(ask.key) is None:
            return await self.begin(ask)
        decision = await self._settle(ask, lambda: self._move(ask))
        if not isinstance(decision, Start):
            self.release(*ask.key)
        return decision

    def release(self, namespace: str, name: str, attempt: int | None = None) -> None:
        """End the pod's seat, if it has one; of this attempt, if one is named. Never raises."""
        if self.seats.release((namespace, name), attempt):
            self._view.wake()

    async def _settle(self, ask: Ask, attempt: Callable[[], Decision | None]) -> Decision:
        """Try at every change until there is a decision or patience is at an end."""
        deadline = time.monotonic() + self._patience
        while (decision := attempt()) is None:
            if not await self._view.changed(deadline - time.monotonic()):
                return self._last_word(ask)
        return decision

    def _last_word(self, ask: Ask) -> Decision:
        decision, health = self.check(ask), self._view.health()
        if isinstance(decision, Start) and isinstance(health, Live):
            return self._decider.try_again(ask, health.age)
        return decision

    def _sit(self, ask: Ask, place: Place) -> Decision | None:
        """Decide, and take the seat in the same tick; None where only time can tell."""
        if place.is_blocked():
            return None
        decision, subject = self.check(ask), ask.subject
        if not _needs_seat(decision) or isinstance(subject, Odd):
            return decision
        claim = place.claim = self._judge.claim(subject)
        if claim and (place.is_blocked() or not self.seats.has_room(ask.key, claim)):
            return None
        self.seats.take(ask.key, subject)
        return decision

    def _move(self, ask: Ask) -> Decision | None:
        """Decide, and let the seat stand for this pod; None where only time can tell."""
        decision, subject, seat = self.check(ask), ask.subject, self.seats.find(ask.key)
        if not _needs_seat(decision) or isinstance(subject, Odd) or seat is None:
            return decision
        claim, held = self._judge.claim(subject), self._judge.claim(seat.subject)
        covered = claim and held and held.covers(claim)
        if claim and not covered and not self.seats.has_room(ask.key, claim):
            return None
        self.seats.move(seat, subject)
        return decision


def _needs_seat(decision: Decision) -> bool:
    """Whether the pod may be created on the strength of a live view."""
    return isinstance(decision, Start) and not any(
        isinstance(note, ViewNotLive) for note in decision.notes
    )
