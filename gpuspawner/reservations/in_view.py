"""Whether a pod that was sent still exists, and whether it has lost its room to another pod."""

import asyncio
import time
from collections.abc import Callable

from msgspec.structs import replace

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.preflight.decision import Decision, Reason, Refuse
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.reservations.pending_pods import is_unschedulable
from gpuspawner.reservations.reservations import LEFT_SECONDS
from gpuspawner.scaling.nodes_to_come import NO_ROOM
from gpuspawner.scheduling.verdicts import Subject, Verdicts

UNSEEN_SECONDS = 2.0
"""How long a pod must be out of sight. The view may lag, and still have shown an older one."""


class InView:
    """Whether the view still shows a pod that was sent."""

    def __init__(self, view: ClusterView, key: str, unseen: float = UNSEEN_SECONDS) -> None:
        self._view = view
        self._key = key
        self._unseen = unseen
        self._was_seen = self._is_seen()
        self._missing_since: float | None = None

    def is_lost(self) -> bool:
        """Whether the pod is gone: out of sight for a while, and not only because of the view.

        The time runs from the first look without the pod: looks may be far apart. A pod that was
        never in view may have come and gone in one answer of a watch.
        """
        is_seen, now = self._is_seen(), time.monotonic()
        self._was_seen = self._was_seen or is_seen
        # Without an error, a view may still be reading its first list.
        if is_seen or not (self._view.in_touch() and isinstance(self._view.health(), Live)):
            self._missing_since = None
            return False
        if self._missing_since is None:
            self._missing_since = now
        return now - self._missing_since >= (self._unseen if self._was_seen else LEFT_SECONDS)

    def _is_seen(self) -> bool:
        state = self._view.state
        return (
            self._key in state.pods
            or self._key in state.unbound_pods
            or any(
                it.kind == "Pod" and self._key == f"{it.namespace}/{it.name}"
                for it in state.undecodable
            )
        )


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
