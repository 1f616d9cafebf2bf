"""A start from its second gate on: what was asked for, and what came of it."""

from dataclasses import dataclass

from gpuspawner import gates, messages
from gpuspawner.asking import Asking
from gpuspawner.messages import Message
from gpuspawner.options import Gone
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import Start, Wait


@dataclass(frozen=True, slots=True)
class Asked:
    """Options that have been read, and what they ask of the cluster.

    Attributes:
        ask: What is asked; its key is where the seat is kept.
        granted: The options, as the hub stores them.
        asking: For whom, on which offers; None where KubeSpawner's profiles make the pod.
        tell: How a refusal is told.
    """

    ask: Ask
    granted: gates.Options
    asking: Asking | None = None
    tell: gates.Tell = gates.tell


@dataclass(frozen=True, slots=True)
class Underway:
    """A start that has passed the second gate.

    Attributes:
        asked: What was asked for.
        decision: The last answer.
    """

    asked: Asked
    decision: Start | Wait

    @property
    def is_promised(self) -> bool:
        """Whether it is a promise: nothing started with a doubt, nothing that awaits a node."""
        return self.decision == Start(self.decision.grant)

    @property
    def seconds_for_a_node(self) -> int:
        """Twice what a new node usually takes; 0 where none can come."""
        accelerator = self.asked.ask.grant.accelerator
        if accelerator is None or accelerator.scale_up is None:
            return 0
        return round(2 * 60 * accelerator.scale_up.minutes)

    def news(self, gone: tuple[Gone, ...]) -> tuple[Message, ...]:
        """What the person is told first; *gone* are options that are no longer on offer."""
        notices = (messages.gone_at_start(gone, self.asked.granted),) if gone else ()
        return (*notices, *messages.progress(self.decision))
