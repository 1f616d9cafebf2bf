"""One start, from the moment its second gate admits it."""

from dataclasses import dataclass
from enum import StrEnum

from gpuspawner import messages
from gpuspawner.messages import Message
from gpuspawner.options import Gone
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.spawn.source import Choice


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
        """Twice the time in seconds that a new node usually takes; 0 if none can come."""
        accelerator = self.choice.proposal.grant.accelerator
        if accelerator is None or accelerator.scale_up is None:
            return 0
        return round(2 * 60 * accelerator.scale_up.minutes)

    def news(self) -> tuple[Message, ...]:
        """The messages that the progress page shows first."""
        notices = (messages.gone_at_start(self.gone, self.choice.options),) if self.gone else ()
        return (*notices, *messages.progress(self.decision))
