"""How long servers last, from those that have ended and those that still run.

The estimate of Kaplan and Meier (1958): servers that still run count for as long as they have. A
mean of those that have ended would miss the long ones. A server that ran already when the hub began
to see ends counts only from the age that it had then (Turnbull 1976; Kalbfleisch and Prentice, "The
Statistical Analysis of Failure Time Data", on left truncation): if it had ended before, nobody
would know of it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from math import exp

import msgspec


class Survival(msgspec.Struct, frozen=True):
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
    def of(
        cls, ended: Iterable[float], running: Iterable[float] = (), late: Iterable[float] = ()
    ) -> "Survival":
        """Estimate it from what has been seen.

        At an early age few servers may be at risk, if most ran already when they were first seen.
        If all of these few end, the share doesn't become 0, which it would stay, but falls by the
        estimate of Nelson and Aalen: to a factor of 1/e instead of 0.

        Args:
            ended: How long servers lasted that have been seen to end, in seconds.
            running: The ages of others, in seconds.
            late: The ages at which any of both were first seen, if later than at their beginning,
                in seconds. Each was older when it ended, or is older now.
        """
        ends = Counter(ended)
        exits, entries = sorted([*ends.elements(), *running]), sorted(late)
        share, shares, times = 1.0, [], sorted(ends)
        for time in times:
            unseen = len(entries) - bisect_left(entries, time)
            at_risk = len(exits) - bisect_left(exits, time) - unseen
            part = ends[time] / at_risk
            share *= exp(-part) if part == 1 and unseen else 1 - part
            shares.append(share)
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
