"""One start, from the moment in which its second gate has let it through."""

from dataclasses import dataclass
from enum import StrEnum

from gpuspawner import messages
from gpuspawner.messages import Message
from gpuspawner.options import Gone
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.preflight.pending_pods import Key
from gpuspawner.spawn.source import Choice


class Phase(StrEnum):
    """How far a start has come."""

    ADMITTED = "admitted"
    """The second gate has let it through; KubeSpawner makes the pod."""
    SENT = "sent"
    """The pod is being sent, or has been."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A start that is under way; printed, it says all that is known of it.

    Attributes:
        choice: Options, grant and pod.
        decision: The last answer about it.
        gone: What of the stored options is no longer on offer.
        phase: How far it has come.
    """

    choice: Choice
    decision: Start | Wait
    gone: tuple[Gone, ...] = ()
    phase: Phase = Phase.ADMITTED

    @property
    def key(self) -> Key:
        """Namespace and name of the pod, by which its reservation is kept."""
        return self.choice.proposal.key

    @property
    def is_promised(self) -> bool:
        """Whether it is a promise: nothing started with a doubt, nothing that awaits a node."""
        return self.decision == Start(self.decision.grant)

    @property
    def seconds_for_a_node(self) -> int:
        """Twice what a new node usually takes; 0 if none can come."""
        accelerator = self.choice.proposal.grant.accelerator
        if accelerator is None or accelerator.scale_up is None:
            return 0
        return round(2 * 60 * accelerator.scale_up.minutes)

    def news(self) -> tuple[Message, ...]:
        """What the person reads first."""
        notices = (messages.gone_at_start(self.gone, self.choice.options),) if self.gone else ()
        return (*notices, *messages.progress(self.decision))
