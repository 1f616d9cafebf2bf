"""Notes when a pod that exists has lost its room to another pod."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from gpuspawner.cluster.view import ClusterView
from gpuspawner.preflight.decision import Decision, Reason, Refuse
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.verdicts import Subject, Verdicts
from gpuspawner.reservations.pending_pods import is_unschedulable
from gpuspawner.scaling.nodes_to_come import NO_ROOM

# How often in a row a pod must seem to have lost its room: the scheduler may try it again.
_LOOKS = 3


class LostRoom:
    """Looks at pods that exist.

    Args:
        check: Decides about a proposal, leaving aside who waits in line.
        look_every: Seconds between two looks.
    """

    def __init__(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        check: Callable[[Proposal], Decision],
        look_every: float,
    ) -> None:
        self._view = view
        self._verdicts = verdicts
        self._check = check
        self._look_every = look_every

    async def until_taken(self, proposal: Proposal) -> Refuse:
        """As `Preflight.until_taken`."""
        looks = 0
        while True:
            await asyncio.sleep(self._look_every)
            refusal = self._lost(proposal)
            looks = looks + 1 if refusal else 0
            if refusal and looks >= _LOOKS:
                return refusal

    def _lost(self, proposal: Proposal) -> Refuse | None:
        """Return why the pending pod has lost its room, if the scheduler and our verdict agree."""
        waiting = self._view.state.unbound_pods.get("/".join(proposal.key))
        if waiting is None or not self._view.in_touch() or not is_unschedulable(waiting):
            return None
        if self._verdicts.verdict(Subject(waiting)).outcome not in NO_ROOM:
            return None
        decision = self._check(proposal.created(waiting))
        if not isinstance(decision, Refuse):
            return None
        is_taken = decision.reason is Reason.BUSY
        return replace(decision, reason=Reason.TAKEN) if is_taken else decision
