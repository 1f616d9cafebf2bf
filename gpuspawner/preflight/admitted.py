"""The preflight's three questions, asked about the pod that admission makes of the one sent.

Admission may add what a pod needs, a toleration say, as well as what it then has to have, and it
may do so for one person alone. So a pod is refused as it was sent only where no node has enough
devices, which admission does not give.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from gpuspawner.admission.changes import changes
from gpuspawner.admission.rejection import OutOfRange, OverQuota, QuotaUncounted, Rejection
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.policy import Grant
from gpuspawner.preflight.alternatives import asked_for
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.claims import Plain
from gpuspawner.preflight.decision import Alternative, Decision, Reason, Refuse
from gpuspawner.preflight.preflight import Preflight

Judge = Callable[[Ask], Awaitable[Decision]]

# Each round asks about at most three; what the API server refuses gives way to what comes next.
_ROUNDS = 4


class AdmittedPreflight:
    """Decides as :class:`Preflight` does, with the API server's admission before it.

    Args:
        preflight: Judges pods and keeps the seats.

    Attributes:
        seats: Its seats.
    """

    def __init__(self, preflight: Preflight) -> None:
        self._preflight = preflight
        self.seats = preflight.seats
        self._changes: dict[str | None, bool] = {}
        """By accelerator, whether admission has changed anybody's pod of it. It may look at who
        asks, so this is no answer about the next pod: only whether it may have changed devices."""

    def check(self, ask: Ask) -> Decision:
        """As `Preflight.check`, without admission."""
        return self._preflight.check(ask)

    async def foretell(self, ask: Ask) -> Decision:
        """As `Preflight.check`, for choices that change while a form is open.

        What is in view says yes by itself; only a no is asked about, as in `begin`. Where admission
        leaves the pod as it is, the alternatives are those in view.

        Raises:
            TooManyDryRunsError: There was no turn, so nothing is known.
        """
        decision = self.check(ask)
        if not self._may_be_saved(ask, decision):
            return decision
        admitted = await ask.admit(ask.pod)
        decision = self.check(ask)  # as it is after the wait
        if _is_left_alone(ask, admitted):
            self._learn(ask, admitted)
            return decision
        return await self._judged(ask, admitted, self._check)

    async def examine(self, ask: Ask) -> Decision:
        """As `Preflight.check`."""
        return await self._after_admission(ask, self._check)

    async def begin(self, ask: Ask) -> Decision:
        """As `Preflight.begin`.

        A yes is given in the tick in which it is asked for; `confirm` sees to the rest. So is a no
        for want of devices.
        """
        return await self._unless_saved(ask, self._preflight.begin)

    async def confirm(self, ask: Ask) -> Decision:
        """As `Preflight.confirm`."""
        decision = await self._after_admission(ask, self._preflight.confirm)
        if isinstance(decision, Refuse):
            self.release(*ask.key)
        return decision

    def release(self, namespace: str, name: str) -> None:
        """As `Preflight.release`."""
        self._preflight.release(namespace, name)

    async def until_taken(self, ask: Ask) -> Refuse:
        """As `Preflight.until_taken`."""
        return await self._preflight.until_taken(ask)

    async def _check(self, ask: Ask) -> Decision:
        return self._preflight.check(ask)

    async def _unless_saved(self, ask: Ask, judge: Judge) -> Decision:
        """Judge the pod as it is sent, and as admission leaves it where that may save it."""
        decision = await judge(ask)
        return (
            await self._after_admission(ask, judge)
            if self._may_be_saved(ask, decision)
            else decision
        )

    def _may_be_saved(self, ask: Ask, decision: Decision) -> bool:
        if not isinstance(decision, Refuse) or decision.reason is Reason.TRY_AGAIN:
            return False
        changed = self._changes.get(_model(ask.grant), True)
        return changed or not self._preflight.lacks_devices(ask)

    async def _after_admission(self, ask: Ask, judge: Judge) -> Decision:
        try:
            admitted = await ask.admit(ask.pod)
        except TooManyDryRunsError:
            decision = await judge(ask)
            # A no would be a guess.
            return self._preflight.try_again(ask) if isinstance(decision, Refuse) else decision
        return await self._judged(ask, admitted, judge)

    async def _judged(self, ask: Ask, admitted: Plain | Rejection | None, judge: Judge) -> Decision:
        if admitted is None:
            return await judge(ask)
        if isinstance(admitted, Rejection):
            return replace(
                rejected(ask.grant, admitted), alternatives=await self._alternatives(ask)
            )
        self._learn(ask, admitted)
        decision = await judge(replace(ask, pod=admitted))
        if isinstance(decision, Refuse) and decision.alternatives:
            return replace(decision, alternatives=await self._alternatives(ask))
        return decision

    def _learn(self, ask: Ask, admitted: object) -> None:
        model = _model(ask.grant)
        self._changes[model] = self._changes.get(model, False) or changes(ask.pod, admitted)

    async def _alternatives(self, ask: Ask) -> tuple[Alternative, ...]:
        """The nearest that fit and that the API server takes."""
        refused: list[Grant] = []
        taken: list[Alternative] = []
        for _ in range(_ROUNDS):
            found = self._preflight.alternatives(ask, besides=refused)
            answers = await asyncio.gather(*(self._is_taken(ask, it.grant) for it in found))
            taken = [it for it, is_taken in zip(found, answers, strict=True) if is_taken]
            if len(taken) == len(found):
                break
            refused += [it.grant for it in found if it not in taken]
        return tuple(taken)

    async def _is_taken(self, ask: Ask, grant: Grant) -> bool:
        made = ask.variant(asked_for(grant, ask.offers))
        if made is None:
            return False
        _, pod = made
        try:
            admitted = await ask.admit(pod)
        except TooManyDryRunsError:
            admitted = None
        if isinstance(admitted, Rejection):
            return False
        return self._preflight.fits(replace(ask, grant=grant, pod=admitted or pod))


def _is_left_alone(ask: Ask, admitted: Plain | Rejection | None) -> bool:
    return isinstance(admitted, Mapping) and not changes(ask.pod, admitted)


def _model(grant: Grant) -> str | None:
    return grant.accelerator.key if grant.accelerator else None


def rejected(grant: Grant, rejection: Rejection) -> Refuse:
    """The refusal because of what the API server said."""
    return Refuse(grant, _reason(rejection), rejection=rejection)


def _reason(rejection: Rejection) -> Reason:
    match rejection.cause:
        case OverQuota() | QuotaUncounted():
            return Reason.QUOTA
        case OutOfRange():
            return Reason.LIMIT_RANGE
        case _:
            return Reason.NOT_ADMITTED
