"""Admits one start: its part of its owner's limits, and its reservation."""

from functools import partial

import msgspec

from gpuspawner.gates import connection
from gpuspawner.gates.decisions import decide
from gpuspawner.gates.host import Host
from gpuspawner.gates.policing import Policing
from gpuspawner.gates.source import Choice
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.reservations.granted import Granted
from gpuspawner.reservations.promises import Promises
from gpuspawner.runtime import Runtime


class Admitted(msgspec.Struct, frozen=True):
    """A start that has its reservation, and its part of its owner's limits."""

    choice: Choice
    decision: Start | Wait
    granted: Granted | None


class Admitting:
    """Admits the starts of one spawner."""

    def __init__(
        self, spawner: Host, runtime: Runtime, policing: Policing, promises: Promises
    ) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self._policing = policing
        self._promises = promises

    async def admit(self, choice: Choice) -> Admitted:
        """Take both, or neither.

        Raises:
            Refusal: The server may not have one of them.
        """
        with self._promises.kept_only_if_it_starts(choice.proposal.key):
            granted = await self._policing.take(choice)
            admission = connection.admission(self._spawner, self._runtime)
            begin = partial(self._runtime.preflight.begin, admission=admission)
            decision = await decide(self._spawner, choice, begin, admission)
            return Admitted(choice, decision, granted)
