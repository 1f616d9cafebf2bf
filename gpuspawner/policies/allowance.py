"""What is left to one user: the tightest of all limits on the same thing."""

from collections.abc import Iterable

import msgspec

from gpuspawner.policies.judging import Standing
from gpuspawner.policies.policies import Measure, Per


class Allowance(msgspec.Struct, frozen=True):
    """What a user and the user's groups may still take.

    Attributes:
        standings: For each measure, the tightest limit of the user, and of each group.
        lifetime: Seconds after which a server with a GPU ends; None for no end.
        is_counted: Whether the hub can count right now; if not, nothing is left.
    """

    standings: tuple[Standing, ...] = ()
    lifetime: int | None = None
    is_counted: bool = True

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the user's servers that take part of a limit."""
        return tuple(sorted({name for it in self.standings for name in it.servers}))


def tightest(found: Iterable[Standing]) -> tuple[Standing, ...]:
    """Return the standings of several servers together, without looser ones about the same."""
    kept: dict[tuple[Per, Measure, str], Standing] = {}
    for standing in found:
        about = (standing.limit.per, standing.limit.measure, standing.group)
        if standing.limit.per is Per.SERVER:
            continue
        if about not in kept or standing.left < kept[about].left:
            kept[about] = standing
    return tuple(kept.values())
