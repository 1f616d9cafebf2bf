"""One start, from the moment its second gate admits it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from gpuspawner import messages
from gpuspawner.messages import Message
from gpuspawner.options import Gone
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.preflight.node_waits import longest_wait
from gpuspawner.spawn.source import Choice

# So that our refusal comes before the hub's own time-out.
CLEANUP_SECONDS = 30


class Phase(StrEnum):
    """How far a start has come."""

    ADMITTED = "admitted"
    """The second gate has admitted it; KubeSpawner makes the pod."""
    SENT = "sent"
    """The pod is being sent, or has been."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A start in progress; its repr shows everything known about it.

    Attributes:
        decision: The preflight's last one.
        gone: The stored options that are no longer on offer.
    """

    choice: Choice
    decision: Start | Wait
    gone: tuple[Gone, ...] = ()
    phase: Phase = Phase.ADMITTED

    @property
    def is_promised(self) -> bool:
        """Whether the pod fits for certain: nothing is unknown, and no new node is needed."""
        return self.decision == Start(self.decision.grant)

    @property
    def seconds_for_a_node(self) -> int:
        """How long the start may wait for a new node, in seconds; 0 if none can come.

        A start with room may need one too, because its node may go.
        """
        if isinstance(self.decision, Wait):
            return math.ceil(longest_wait(self.decision.scale_up) + CLEANUP_SECONDS)
        pool = self.choice.proposal.declared_pool
        return round(2 * 60 * pool.scale_up.minutes) if pool else 0

    def news(self) -> tuple[Message, ...]:
        """The messages that the progress page shows first."""
        notices = (messages.gone_at_start(self.gone, self.choice.options),) if self.gone else ()
        return (*notices, *messages.progress(self.decision))
