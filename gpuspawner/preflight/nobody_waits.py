"""Who waits in line for room: in a hub without a line, nobody.

It is what the preflight asks of a line. `gpuspawner.line` has the one in which people wait.
"""

# ruff: noqa: ARG002, without a line, nothing depends on who asks

from collections import Counter
from collections.abc import Callable, Iterable

from gpuspawner.cluster.view import ClusterView
from gpuspawner.preflight.decision import Decision
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scheduling.verdicts import Verdicts


class WhoWaits:
    """Those who wait: nobody, in a hub without a line."""

    def __len__(self) -> int:
        """Return how many servers wait."""
        return 0

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits, here or on the way back."""
        return True

    def waiting(self) -> Counter[str]:
        """Return how many servers wait for each accelerator; by its resource, if of a profile.

        Servers that policies don't allow yet are left out: a free GPU doesn't help them.
        """
        return Counter()

    def kept(self) -> Iterable[tuple[str, str, int]]:
        """Return the nodes on which servers collect, the resource, and how many are free there."""
        return ()

    def ahead_of(self, proposal: Proposal) -> int:
        """Return how many people in line wait for any of the nodes of somebody who isn't."""
        return 0

    def delayed_by(self, proposal: Proposal) -> int:
        """Return how many people in line are ahead if a start has to wait for one of them; or 0."""
        return 0

    def look(self) -> None:
        """Call everybody whose turn it is."""


DecidesAlone = Callable[[Proposal], Decision]
"""Decides about a proposal at this moment, leaving the line aside."""
MakesLine = Callable[[ClusterView, Verdicts, Reservations, DecidesAlone], WhoWaits]


def nobody_waits(*_: object) -> WhoWaits:
    """Make the line of a hub without one."""
    return WhoWaits()
