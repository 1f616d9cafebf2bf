"""Which starts would have been refused with ``preflight: warn``, and what became of them."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from gpuspawner.troubles.facts import Fact, Happened


class RefusalReport(msgspec.Struct, frozen=True):
    """What became of the starts that would have been refused.

    Attributes:
        since, until: The times of the first and last fact, in seconds since 1970; 0 without any.
        starts: How many starts there were, refused ones included.
        refused: How many were refused.
        overruled: How many would have been.
        by_reason: The same by reason, the most frequent first.
        failed: How many of these never became a server.
        waited: For how many seconds their owners waited, all together.
        started: How many became a server after all.
    """

    since: float = 0.0
    until: float = 0.0
    starts: int = 0
    refused: int = 0
    overruled: int = 0
    by_reason: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    waited: float = 0.0
    started: int = 0


def report(facts: Iterable[Fact]) -> RefusalReport:
    """Count; the facts are in the order in which they happened.

    A start that goes on still is neither failed nor started.
    """
    counts = Counter[Happened]()
    reasons = Counter[str]()
    since = until = waited = 0.0
    failed = started = 0
    begins: set[tuple[str, str]] = set()
    followed: set[tuple[str, str]] = set()
    for fact in facts:
        since, until = since or fact.at, fact.at
        server = fact.user, fact.server
        counts[fact.happened] += 1
        match fact.happened:
            case Happened.OVERRULED:
                reasons[fact.reason] += 1
                begins.add(server)
            case Happened.GRANTED if server in begins:
                begins.remove(server)
                followed.add(server)
            case Happened.GRANTED:  # no earlier start goes on, even if its end isn't known
                followed.discard(server)
            case Happened.STARTED if server in followed:
                started += 1
                followed.remove(server)
            case Happened.ENDED if server in followed:
                failed, waited = failed + 1, waited + fact.seconds
                followed.remove(server)
            case _:
                pass
    return RefusalReport(
        since,
        until,
        starts=counts[Happened.GRANTED] + counts[Happened.REFUSED],
        refused=counts[Happened.REFUSED],
        overruled=counts[Happened.OVERRULED],
        by_reason=tuple(reasons.most_common()),
        failed=failed,
        waited=waited,
        started=started,
    )
