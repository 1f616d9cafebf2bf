"""Admits one start when it is its turn: its part of its owner's limits, and its reservation."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial

from gpuspawner.compat import jupyterhub
from gpuspawner.reservations.place_in_line import Wish
from gpuspawner.runtime import Runtime
from gpuspawner.start import connection
from gpuspawner.start.asking_preflight import decide
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Policing
from gpuspawner.start.refusal import about
from gpuspawner.start.source import Choice


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
                begin = partial(preflight.begin, admission=admission)
                decision = await decide(self._spawner, choice, begin, admission)
        except BaseException:
            preflight.reservations.end(choice.proposal.key)
            raise
        return Attempt(choice, decision, granted=granted)

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
