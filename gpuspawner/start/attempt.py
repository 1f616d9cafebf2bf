"""One start: how it is admitted, when it is its turn, and what is known of it from then on."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuspawner import messages
from gpuspawner.compat import jupyterhub, pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.manifest import with_last_words
from gpuspawner.offers.node_affinity import off
from gpuspawner.offers.user_options import Gone
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.reservations.granted import Granted, mark
from gpuspawner.reservations.place_in_line import Wish
from gpuspawner.runtime import Runtime
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.start import connection
from gpuspawner.start.asking_preflight import decide
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Policing
from gpuspawner.start.refusal import about
from gpuspawner.start.source import Choice

# So that our refusal comes before the hub's own time-out.
CLEANUP_SECONDS = 30
_LEAST_SECONDS = 5.0


class Attempt(msgspec.Struct, frozen=True):
    """A start in progress.

    Attributes:
        decision: The preflight's last one.
        granted: What policies have granted; None without policies.
        is_sent: Whether its pod is being sent, or has been; KubeSpawner may send it again.
        ends: When the hub or KubeSpawner gives it up, by ``time.monotonic``.
        starting: How long its containers may take to start, in seconds.
    """

    choice: Choice
    decision: Start | Wait
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

    def news(self, gone: tuple[Gone, ...] = ()) -> tuple[messages.Message, ...]:
        """The messages that the progress page shows first; *gone* are options not on offer now."""
        notices = (messages.gone_at_start(gone, self.choice.options),) if gone else ()
        ends = self.granted.lifetime if self.granted else None
        told = (messages.ends_after(ends),) if ends else ()
        return (*notices, *told, *messages.progress(self.decision))


class TurnToStart:
    """When one start is admitted. In a hub without a line: at once, or never.

    `gpuspawner.line.in_line` lets it wait.

    Attributes:
        is_on: Whether it waits right now.
        has_waited: Whether it waits or has been called.
    """

    is_on = has_waited = False

    def __init__(self, spawner: Host, runtime: Runtime, policing: Policing) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self._policing = policing

    async def admit(self, choice: Choice) -> Attempt:
        """Take both the part of the limits and the reservation, or neither.

        Raises:
            Refusal: The server may not have one of them.
        """
        preflight = self._runtime.preflight
        try:
            with about(choice.proposal.grant):
                granted = await self._policing.take(choice)
                admission = connection.admission(self._spawner, self._runtime.dry_runs)
                decision = await decide(self._spawner, choice, preflight.begin, admission)
        except BaseException:
            preflight.reservations.end(choice.proposal.key)
            raise
        return Attempt(choice, decision, granted)

    def giving_up_kept_place(self) -> AbstractContextManager[None]:
        """Give up the place that was kept for this start, unless it may be admitted in a moment."""
        return nullcontext()

    async def through(self, asked: Choice, wish: Wish) -> Attempt:  # noqa: ARG002, nobody waits
        """Admit a start, when it is its turn if its owner wants to wait in line.

        Raises:
            Refusal: It isn't admitted, and nobody waits for it.
        """
        return await jupyterhub.surviving(self._spawner, partial(self.admit, asked))

    def kept_if_taken(self) -> AbstractContextManager[None]:
        """Let a start from which the room was taken after its turn wait on, at its old place.

        Who was in line before also waits on if nobody can say whether policies still allow it.

        Raises:
            Refusal: The start has failed; its owner waits again.
        """
        return nullcontext()

    def watched(self) -> AbstractContextManager[None]:
        """Note that a page is open that shows this wait."""
        return nullcontext()
