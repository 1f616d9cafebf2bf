"""How long servers last, from those that have ended and those that still run.

The estimate of Kaplan and Meier (1958): servers that still run count for as long as they have. A
mean of those that have ended would miss the long ones.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Survival:
    """The share of servers that last longer than each time at which one has ended.

    Attributes:
        times: In seconds, ascending.
        shares: The share that lasts longer than each of these times.
        ends: How many servers have been seen to end.
    """

    times: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    ends: int = 0

    @classmethod
    def of(cls, ended: Iterable[float], running: Iterable[float] = ()) -> "Survival":
        """Estimate it from the durations of servers that have ended, and the ages of others."""
        ends, ages = Counter(ended), Counter(running)
        left, share = ends.total() + ages.total(), 1.0
        times: list[float] = []
        shares: list[float] = []
        for time in sorted({*ends, *ages}):
            if count := ends[time]:
                share *= 1 - count / left
                times.append(time)
                shares.append(share)
            left -= count + ages[time]
        return cls(tuple(times), tuple(shares), ends.total())

    def beyond(self, seconds: float) -> float:
        """Return the share that lasts longer than a time."""
        index = bisect_right(self.times, seconds)
        return self.shares[index - 1] if index else 1.0

    def ends_within(self, seconds: float, age: float) -> float:
        """Return the probability that a server of an age ends within a time.

        It is 0 for a server that is older than any that was seen to end: nobody knows.
        """
        now = self.beyond(age)
        return 1 - self.beyond(age + seconds) / now if now > 0 else 0.0
