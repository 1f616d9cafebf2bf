"""How long a place in line may take: a range, and only if there is ground for one."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import erf, sqrt

import msgspec

from gpuspawner.line.survival import Survival

LEAST_ENDS = 8
"""How many servers must have been seen to end, before others are expected to end so."""
_MINUTES = (
    *range(1, 10),
    *range(10, 60, 5),
    *range(60, 180, 15),
    *range(180, 360, 30),
    *range(360, 24 * 60, 60),
    *range(24 * 60, 48 * 60 + 1, 180),
)
TIMES = (0.0, *(60.0 * it for it in _MINUTES))
"""The times that are told, in seconds; nothing is said of what takes longer.

There are few, so that what a person reads doesn't change with each second.
"""
_LOW, _HIGH = 0.2 - 1e-9, 0.8 - 1e-9
"""It takes less than the range in one case of five at most, and more in one of five."""
_FEW = 30
"""From so many servers on, their sum is as good as normally distributed."""
_MANY = 1_000
"""From so many devices on too: an exact sum costs as much as there are, and some are megabytes."""
_SAME_SECONDS = 60.0
"""Among so many, servers whose ages differ by less count as equal."""


class Occupant(msgspec.Struct, frozen=True):
    """A server that has what others wait for.

    Attributes:
        amount: How many devices it has.
        age: For how many seconds it has run.
        left: Seconds after which it ends at the latest; None if nothing says so.
    """

    amount: int
    age: float
    left: float | None = None


class Range(msgspec.Struct, frozen=True):
    """Between how many seconds something takes, usually."""

    low: float
    high: float


class Forecast:
    """How many devices become free, and when.

    Lifetimes are ground enough; otherwise enough servers must have ended before. The first question
    costs a pass over the kinds of servers for each of some times, later ones almost nothing.
    """

    def __init__(self, occupants: Iterable[Occupant], survival: Survival) -> None:
        self._survival = survival if survival.ends >= LEAST_ENDS else Survival()
        given = list(occupants)
        self._is_exact = len(given) < _FEW and sum(it.amount for it in given) < _MANY
        alike = given if self._is_exact else [_rounded(it) for it in given]
        self._servers = Counter(alike)
        self._at = cache(self._exact if self._is_exact else self._normal)

    def until_free(self, needed: int) -> Range | None:
        """Return how long it takes until so many devices have become free; None without ground."""
        if needed <= 0:
            return Range(0.0, 0.0)
        low, high = (
            bisect_left(TIMES, least, key=lambda it: self._enough(needed, it))
            for least in (_LOW, _HIGH)
        )
        return None if high == len(TIMES) else Range(TIMES[max(0, low - 1)], TIMES[high])

    def _enough(self, needed: int, seconds: float) -> float:
        """Return the probability that so many devices have become free after a time."""
        if self._is_exact:
            chances = self._at(seconds)
            return sum(chances[needed:])
        mean, deviation = self._at(seconds)
        if not deviation:
            return float(mean >= needed)
        return (1 + erf((mean - needed + 0.5) / deviation / sqrt(2))) / 2

    def _exact(self, seconds: float) -> tuple[float, ...]:
        """Return the probability of each number of devices that have become free after a time."""
        chances = [1.0]
        for it in self._servers.elements():
            ends = self._ends(it, seconds)
            with_it = [*(0.0 for _ in range(it.amount)), *(chance * ends for chance in chances)]
            without = [
                *(chance * (1 - ends) for chance in chances),
                *(0.0 for _ in range(it.amount)),
            ]
            chances = [one + other for one, other in zip(with_it, without, strict=True)]
        return tuple(chances)

    def _normal(self, seconds: float) -> tuple[float, float]:
        """Return the mean and the standard deviation of how many have become free after a time."""
        mean = variance = 0.0
        for it, count in self._servers.items():
            ends = self._ends(it, seconds)
            mean += count * it.amount * ends
            variance += count * it.amount**2 * ends * (1 - ends)
        return mean, sqrt(variance)

    def _ends(self, it: Occupant, seconds: float) -> float:
        if it.left is not None and it.left <= seconds:
            return 1.0
        return self._survival.ends_within(seconds, it.age)


def _rounded(it: Occupant) -> Occupant:
    left = None if it.left is None else _round(it.left)
    return Occupant(it.amount, _round(it.age), left)


def _round(seconds: float) -> float:
    return round(seconds / _SAME_SECONDS) * _SAME_SECONDS
