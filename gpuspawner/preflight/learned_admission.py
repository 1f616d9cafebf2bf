"""What dry runs have shown of admission, which decides whether it is asked about the next pod."""

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import suppress

from gpuspawner.kube.pods import Pod
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Decision, Refuse
from gpuspawner.preflight.dry_runs import Admission, TooManyDryRunsError, added_tolerations, changes
from gpuspawner.preflight.learned_hooks import Placements
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import (
    OutOfRange,
    OverQuota,
    QuotaDemands,
    QuotaUncounted,
    Rejection,
)

# Webhooks come, go and change. While servers start, each of them shows it.
_FRESH_SECONDS = 3600.0


class LearnedAdmission:
    """Asks admission, and remembers what it did. One for the whole hub.

    Attributes:
        placements: What becomes of pods after the first gates.
    """

    def __init__(self) -> None:
        self.placements = Placements()
        self._changes: dict[str | None, bool] = {}
        """By accelerator, whether admission has ever changed a pod that uses it. Admission may look
        at the user, so this says nothing about the next pod but whether it may change devices."""
        self._learned_at: dict[str | None, float] = {}
        """When servers' own pods were last tried; never, if only samples were."""
        self._verifying: set[asyncio.Task[object]] = set()
        self._held_back: dict[str, bool] = {}
        """By namespace, whether Kueue has held the last pod back that named a queue."""

    @property
    def version(self) -> object:
        """Changes with what decides whether admission is asked."""
        return frozenset(self._changes.items()), frozenset(self._held_back.items())

    def may_change(self, grant: Grant) -> bool:
        """Whether admission may change a pod with this accelerator, as far as anybody knows."""
        return self._changes.get(_model(grant), True)

    def holds_back(self, proposal: Proposal) -> bool | None:
        """Whether Kueue has a queue for a pod, and has held the last one of its namespace back.

        None if the pod names a queue, and nobody knows yet.
        """
        return self._held_back.get(proposal.namespace) if proposal.queue else False

    async def admitted(
        self, proposal: Proposal, admission: Admission
    ) -> Proposal | Rejection | None:
        """Return the proposal as admission changes it, or its rejection; None without an answer.

        Raises:
            TooManyDryRunsError: No dry run got its turn in time, so nothing is known.
        """
        answer = await admission.admit(proposal.namespace, proposal.pod)
        if answer is None or isinstance(answer, Rejection):
            return answer
        admitted = proposal.admitted(answer)
        self._learn(proposal, admitted)
        return admitted

    async def try_sample(self, sample: Proposal, admission: Admission) -> Pod | None:
        """Learn from a pod that is like those of servers, but that nobody starts.

        Return it as admission leaves it; None if that isn't known.

        So the first refusals need no dry run either. The first server's pod that is refused because
        of this is tried afterwards, in case admission treats it differently.
        """
        model = _model(sample.grant)
        try:
            answer = await admission.admit(sample.namespace, sample.pod)
        except TooManyDryRunsError:
            return None
        if not isinstance(answer, Mapping):
            return None
        admitted = sample.admitted(answer)
        if self._learned_at.get(model, -math.inf) == -math.inf:
            self._learn(sample, admitted)
            self._learned_at[model] = -math.inf
        return admitted.decoded

    def verify(self, proposal: Proposal, decision: Decision, admission: Admission) -> None:
        """Try a pod that was refused because of what samples or old answers have shown.

        Without an answer, the next one that is refused is tried.
        """
        model, now = _model(proposal.grant), time.monotonic()
        is_fresh = now - self._learned_at.get(model, -math.inf) <= _FRESH_SECONDS
        if not isinstance(decision, Refuse) or is_fresh:
            return
        self._learned_at[model] = now

        async def ask() -> None:
            answer = None
            with suppress(TooManyDryRunsError):
                answer = await self.admitted(proposal, admission)
            if answer is None:
                self._learned_at[model] = -math.inf

        task = asyncio.ensure_future(ask())
        self._verifying.add(task)
        task.add_done_callback(self._verifying.discard)

    def _learn(self, proposal: Proposal, admitted: Proposal) -> None:
        model = _model(proposal.grant)
        self._learned_at[model] = time.monotonic()
        changed = changes(proposal.pod, admitted.pod)
        self._changes[model] = self._changes.get(model, False) or changed
        if proposal.queue:
            self._held_back[proposal.namespace] = bool(admitted.queue)
        self.placements.admit(proposal.kind, added_tolerations(proposal.pod, admitted.pod))


def unless_mended(
    proposal: Proposal, admitted: Proposal | Rejection | None
) -> Proposal | Rejection | None:
    """Return what `admitted` has; None for what the hub's own code may still mend, or make."""
    if not isinstance(admitted, Rejection):
        return admitted
    if isinstance(admitted.cause, OverQuota | QuotaDemands | QuotaUncounted | OutOfRange):
        return None if proposal.is_open else admitted  # whether code changes requests is learned
    return None if proposal.is_unfinished else admitted


def _model(grant: Grant) -> str | None:
    return grant.accelerator.key if grant.accelerator else None
