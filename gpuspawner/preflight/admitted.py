"""The preflight's three gates, asked about the pod as admission changes it.

Admission may add a toleration that lets a pod fit, or a further demand, perhaps for one user alone.
So a pod is refused, or told to wait for a node, without asking admission only if no node has enough
devices, which admission can't give.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import msgspec

from gpuspawner.kube.pods import Pod
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.alternatives import Variants, request_for
from gpuspawner.preflight.decision import (
    Alternative,
    Decision,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    UnknownRules,
    Wait,
)
from gpuspawner.preflight.dry_run import Admission, Answer, added_tolerations, changes
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.placement import Placements
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.rejection import (
    OutOfRange,
    OverQuota,
    QuotaUncounted,
    Rejection,
    WebhookFailed,
)
from gpuspawner.scheduling.verdicts import PodShape

_Gate = Callable[[Proposal], Awaitable[Decision]]
"""One of the preflight's gates, without admission."""

# Each round asks about at most three alternatives; the next round replaces those it rejects.
_ROUNDS = 4
_NOT_ASKED = UnknownRules(("nobody knows whether Kueue holds the pod back",))


class AdmittedPreflight:
    """Decides as `Preflight` does, but about the pod after the API server's admission.

    Attributes:
        placements: What becomes of pods after the first gates.
    """

    def __init__(self, preflight: Preflight) -> None:
        self._preflight = preflight
        self.reservations = preflight.reservations
        self.to_come = preflight.to_come
        self.line = preflight.line
        self._changes: dict[str | None, bool] = {}
        """By accelerator, whether admission has ever changed a pod that uses it. Admission may look
        at the user, so this says nothing about the next pod but whether it may change devices."""
        self.placements = Placements()
        self._supposed: set[str | None] = set()
        """The accelerators for which only samples were tried."""
        self._verifying: set[asyncio.Task[object]] = set()
        self._held_back: set[str] = set()
        """The namespaces in which Kueue has held the last pod back that named a queue."""

    @property
    def learned(self) -> object:
        """Changes with what is known of admission, which decides whether it is asked."""
        return frozenset(self._changes.items()), frozenset(self._held_back)

    def check(self, proposal: Proposal) -> Decision:
        """As `Preflight.check`, without admission."""
        return self._preflight.check(proposal)

    def fits(self, proposal: Proposal) -> bool:
        """As `Preflight.fits`."""
        return self._preflight.fits(proposal)

    def shape(self, proposal: Proposal) -> PodShape | None:
        """As `Preflight.shape`."""
        return self._preflight.shape(proposal)

    def depends_on_labels(self, pod: Pod | None) -> bool:
        """As `Preflight.depends_on_labels`."""
        return self._preflight.depends_on_labels(pod)

    def places(self, proposal: Proposal) -> bytes:
        """As `Preflight.places`."""
        return self._preflight.places(proposal)

    def room(self, proposal: Proposal) -> ResourceRoom | None:
        """As `Preflight.room`."""
        return self._preflight.room(proposal)

    async def foretell(self, proposal: Proposal, admission: Admission) -> Decision:
        """Like `check`, for an open form whose choices change: ask admission only as `begin` does.

        If admission leaves the pod as it is, the alternatives need no dry run either.

        Raises:
            TooManyDryRunsError: No dry run got its turn in time, so nothing is known.
        """
        decision = self.check(proposal)
        if not self._has_to_ask(proposal, decision):
            self._verify(proposal, decision, admission)
            return decision
        admitted = await admission.admit(proposal.namespace, proposal.pod)
        decision = self.check(proposal)  # the view may have changed during the wait
        # Whether Kueue manages the pod can be read only of the pod that it has seen.
        if _is_left_alone(proposal, admitted) and not proposal.queue:
            self._learn(proposal, admitted)
            return decision
        return await self._judged(proposal, admitted, self._check)

    async def examine(self, proposal: Proposal, admission: Admission) -> Decision:
        """As `Preflight.check`, after admission."""
        return await self._after_admission(proposal, admission, self._check)

    async def begin(self, proposal: Proposal, admission: Admission) -> Decision:
        """As `Preflight.begin`; ask admission only about what it could turn into a start.

        So a yes, or a no for lack of devices, comes in the tick of the question. `confirm` asks
        admission later. Only if a pod names a queue of Kueue, a yes has to wait for admission until
        that has shown that Kueue holds such pods back.
        """
        decision = await self._preflight.begin(proposal)
        if not self._has_to_ask(proposal, decision):
            self._verify(proposal, decision, admission)
            return decision
        return await self.confirm(proposal, admission)

    async def try_sample(self, sample: Proposal, admission: Admission) -> Pod | None:
        """Learn from a pod that is like those of servers, but that nobody starts.

        Return it as admission leaves it; None if that isn't known.

        So the first refusals need no dry run either. The first server's pod that is refused because
        of this is tried afterwards, in case admission treats it differently.
        """
        model = _model(sample.grant)
        try:
            admitted = await admission.admit(sample.namespace, sample.pod)
        except TooManyDryRunsError:
            return None
        if not isinstance(admitted, Mapping):
            return None
        if model not in self._changes or model in self._supposed:
            self._learn(sample, admitted)
            self._supposed.add(model)
        return sample.admitted(admitted).decoded

    def _verify(self, proposal: Proposal, decision: Decision, admission: Admission) -> None:
        """Try a server's own pod, if it was refused because of what samples have shown.

        Without an answer, the next one that is refused is tried.
        """
        model = _model(proposal.grant)
        if not isinstance(decision, Refuse) or model not in self._supposed:
            return
        self._supposed.discard(model)

        async def ask() -> None:
            answer = None
            with suppress(TooManyDryRunsError):
                answer = await self.admitted(proposal, admission)
            if answer is None:
                self._supposed.add(model)

        task = asyncio.ensure_future(ask())
        self._verifying.add(task)
        task.add_done_callback(self._verifying.discard)

    async def confirm(self, proposal: Proposal, admission: Admission) -> Decision:
        """As `Preflight.confirm`, after admission."""
        decision = await self._after_admission(proposal, admission, self._preflight.confirm)
        if isinstance(decision, Refuse):
            self.reservations.release(proposal.key)
        return decision

    async def is_sure_of(self, proposal: Proposal, admission: Admission) -> bool:
        """As `Preflight.is_sure_of`, after admission."""
        try:
            admitted = await self.admitted(proposal, admission)
        except TooManyDryRunsError:
            return False
        if isinstance(admitted, Rejection):
            return False
        return self._preflight.is_sure_of(admitted or proposal)

    def check_sent(self, proposal: Proposal) -> Decision:
        """As `Preflight.check_sent`."""
        return self._preflight.check_sent(proposal)

    async def with_alternatives(
        self, refusal: Refuse, proposal: Proposal, variants: Variants, admission: Admission
    ) -> Refuse:
        """Return the refusal with alternatives that this user can have now, nearest first.

        If admission was asked for the refusal, it is asked for the alternatives too.
        """
        # It isn't known yet who gets the room.
        if refusal.reason is Reason.TRY_AGAIN or _fails_for_all(refusal):
            return refusal
        if not refusal.after_admission:
            return msgspec.structs.replace(
                refusal, alternatives=self._preflight.alternatives(proposal, variants)
            )
        found = await self._admitted_alternatives(proposal, variants, admission)
        return msgspec.structs.replace(refusal, alternatives=found)

    async def examine_instead(
        self, refusal: Refuse, proposal: Proposal, admission: Admission
    ) -> Decision:
        """As `examine`, for an alternative; admission is asked only if it was for the refusal."""
        if _fails_for_all(refusal):
            return refusal
        if refusal.after_admission:
            return await self.examine(proposal, admission)
        return self.check(proposal)

    async def _check(self, proposal: Proposal) -> Decision:
        return self._preflight.check(proposal)

    async def admitted(
        self, proposal: Proposal, admission: Admission
    ) -> Proposal | Rejection | None:
        """Return the proposal as admission changes it, or its rejection; None without an answer.

        Raises:
            TooManyDryRunsError: As `foretell`.
        """
        admitted = await admission.admit(proposal.namespace, proposal.pod)
        if admitted is None or isinstance(admitted, Rejection):
            return admitted
        self._learn(proposal, admitted)
        return proposal.admitted(admitted)

    async def to_wait(self, proposal: Proposal, admission: Admission) -> Proposal:
        """Return the proposal that waits in line: after admission, if a no of `begin` comes then.

        Otherwise the line would call whom `begin` refuses again.
        """
        if not self.may_become_start(proposal, self.check(proposal)):
            return proposal
        try:
            admitted = await self.admitted(proposal, admission)
        except TooManyDryRunsError:
            return proposal
        return admitted if isinstance(admitted, Proposal) else proposal

    def may_become_start(self, proposal: Proposal, decision: Decision) -> bool:
        """Whether admission could turn the decision, a no or a wait for a node, into a start."""
        changed = self._changes.get(_model(proposal.grant), True)
        if isinstance(decision, Wait):
            return changed and not self._preflight.lacks_devices(proposal)
        if not isinstance(decision, Refuse) or decision.reason is Reason.TRY_AGAIN:
            return False
        if decision.queue is not None and not proposal.is_admitted:
            return True  # Kueue may leave the pods of this namespace alone
        return changed or not self._preflight.lacks_devices(proposal)

    def _has_to_ask(self, proposal: Proposal, decision: Decision) -> bool:
        """Whether admission may allow a no, or may show that Kueue leaves the pod alone."""
        may_be_left_alone = proposal.queue and proposal.namespace not in self._held_back
        return bool(may_be_left_alone) or self.may_become_start(proposal, decision)

    async def _after_admission(
        self, proposal: Proposal, admission: Admission, question: _Gate
    ) -> Decision:
        try:
            admitted = await admission.admit(proposal.namespace, proposal.pod)
        except TooManyDryRunsError:
            decision = await question(proposal)
            # A no would be a guess.
            is_no = isinstance(decision, Refuse)
            return self._preflight.try_again(proposal) if is_no else decision
        return await self._judged(proposal, admitted, question)

    async def _judged(self, proposal: Proposal, admitted: Answer, question: _Gate) -> Decision:
        if admitted is None:
            decision = await question(proposal)
            is_guess = isinstance(decision, Refuse) and decision.queue is not None
            return Start(proposal.grant, (_NOT_ASKED,)) if is_guess else decision
        if isinstance(admitted, Rejection):
            return rejected(proposal.grant, admitted)
        self._learn(proposal, admitted)
        decision = await question(proposal.admitted(admitted))
        if isinstance(decision, Refuse):
            return msgspec.structs.replace(decision, after_admission=True)
        return decision

    def _learn(self, proposal: Proposal, admitted: object) -> None:
        model = _model(proposal.grant)
        self._supposed.discard(model)
        changed = changes(proposal.pod, admitted)
        self._changes[model] = self._changes.get(model, False) or changed
        if proposal.queue and isinstance(admitted, Mapping):
            is_held_back = bool(proposal.admitted(admitted).queue)
            change = self._held_back.add if is_held_back else self._held_back.discard
            change(proposal.namespace)
        self.placements.admit(proposal.kind, added_tolerations(proposal.pod, admitted))

    async def _admitted_alternatives(
        self, proposal: Proposal, variants: Variants, admission: Admission
    ) -> tuple[Alternative, ...]:
        async def is_accepted(grant: Grant) -> bool:
            made = variants.variant(request_for(grant, variants.offers))
            if made is None:
                return False
            _, pod = made
            return await self._is_accepted(replace(proposal, grant=grant, pod=pod), admission)

        refused: list[Grant] = []
        accepted: list[Alternative] = []
        for _ in range(_ROUNDS):
            found = self._preflight.alternatives(proposal, variants, besides=refused)
            answers = await asyncio.gather(*(is_accepted(it.grant) for it in found))
            accepted = [it for it, yes in zip(found, answers, strict=True) if yes]
            if len(accepted) == len(found):
                break
            refused += [it.grant for it in found if it not in accepted]
        return tuple(accepted)

    async def _is_accepted(self, proposal: Proposal, admission: Admission) -> bool:
        try:
            admitted = await admission.admit(proposal.namespace, proposal.pod)
        except TooManyDryRunsError:
            admitted = None
        if isinstance(admitted, Rejection):
            return False
        return self._preflight.fits(replace(proposal, pod=admitted or proposal.pod))


def _is_left_alone(proposal: Proposal, admitted: Answer) -> bool:
    return isinstance(admitted, Mapping) and not changes(proposal.pod, admitted)


def _fails_for_all(refusal: Refuse) -> bool:
    """Whether a webhook doesn't answer: dry runs don't tell whether it would for another pod."""
    return refusal.rejection is not None and isinstance(refusal.rejection.cause, WebhookFailed)


def _model(grant: Grant) -> str | None:
    return grant.accelerator.key if grant.accelerator else None


def rejected(grant: Grant, rejection: Rejection) -> Refuse:
    """Return the refusal for a pod that the API server rejects."""
    return Refuse(grant, _reason(rejection), rejection=rejection, after_admission=True)


def _reason(rejection: Rejection) -> Reason:
    match rejection.cause:
        case OverQuota() | QuotaUncounted():
            return Reason.QUOTA
        case OutOfRange():
            return Reason.LIMIT_RANGE
        case _:
            return Reason.NOT_ADMITTED
