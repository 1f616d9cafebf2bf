"""One start, from the moment its second gate admits it."""

import math
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuspawner import messages
from gpuspawner.compat import pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.messages import Message
from gpuspawner.offers.manifest import with_last_words
from gpuspawner.offers.node_affinity import off
from gpuspawner.offers.user_options import Gone
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.reservations.granted import Granted, mark
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.start.source import Choice

# So that our refusal comes before the hub's own time-out.
CLEANUP_SECONDS = 30
_LEAST_SECONDS = 5.0


class Attempt(msgspec.Struct, frozen=True):
    """A start in progress.

    Attributes:
        decision: The preflight's last one.
        gone: The stored options that are no longer on offer.
        granted: What policies have granted; None without policies.
        is_sent: Whether its pod is being sent, or has been; KubeSpawner may send it again.
        ends: When the hub or KubeSpawner gives it up, by ``time.monotonic``.
        starting: How long its containers may take to start, in seconds.
    """

    choice: Choice
    decision: Start | Wait
    gone: tuple[Gone, ...] = ()
    granted: Granted | None = None
    is_sent: bool = False
    ends: float = math.inf
    starting: float = 0.0

    def complete(self, pod: Any, change: Callable[[Manifest], Manifest]) -> Any:
        """Write into KubeSpawner's pod what was granted, and then *change* it.

        Raises:
            Refusal: The grant contradicts KubeSpawner's configuration.
        """
        before = pods.plain(pod)
        completed = self.choice.complete(before)
        if self.choice.kept_off:
            completed = off(completed, self.choice.kept_off)
        made = with_last_words(change(completed))
        return pods.changed(pod, before, mark(made, self.granted) if self.granted else made)

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

    @property
    def seconds_left(self) -> float:
        """How long the start may still wait, in seconds, so that it doesn't time out.

        The last gate may find that it needs a new node, when the hub has already read its timeout.
        Its containers still need their time then.
        """
        after = self.starting + CLEANUP_SECONDS
        return max(_LEAST_SECONDS, self.ends - time.monotonic() - after)

    def ending_in(self, seconds: float) -> "Attempt":
        """Return the attempt with a timeout that runs from now on, beside those that run already.

        The hub and KubeSpawner may have different ones.
        """
        return replace(self, ends=min(self.ends, time.monotonic() + seconds))

    def news(self) -> tuple[Message, ...]:
        """The messages that the progress page shows first."""
        notices = (messages.gone_at_start(self.gone, self.choice.options),) if self.gone else ()
        ends = self.granted.lifetime if self.granted else None
        told = (messages.ends_after(ends),) if ends else ()
        return (*notices, *told, *messages.progress(self.decision))
