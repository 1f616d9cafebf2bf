"""From the feeds of single kinds to the health of the whole view."""

import time
from collections.abc import Sequence

from gpuspawner.cluster.feed import Feed
from gpuspawner.cluster.health import Forbidden, Health, Live, Reading, Stale, Unreachable

# A broken watch is usually taken up again within a second; only then is the picture called stale.
STALE_AFTER = 10.0


def standing(feeds: Sequence[Feed], since: float, silence: float) -> Health:
    """How far what the required kinds hold can be trusted.

    Args:
        feeds: Those of the required kinds.
        since: When reading began, by ``time.monotonic``.
        silence: Seconds without a word after which a watch is taken up anew.
    """
    now = time.monotonic()
    return (
        _forbidden(feeds)
        or _unread(feeds, now - since)
        or _freshness(feeds, now, silence + STALE_AFTER)
    )


def is_forbidden(feed: Feed) -> bool:
    """Whether the API server refuses this kind to the hub."""
    return feed.error is not None and feed.error.status == 403


def is_open(feed: Feed) -> bool:
    """Whether it has yet to turn out if this kind can be read."""
    return not feed.listed and feed.error is None


def _forbidden(feeds: Sequence[Feed]) -> Forbidden | None:
    errors = {feed.kind.plural: feed.error for feed in feeds if is_forbidden(feed)}
    if not errors:
        return None
    return Forbidden(tuple(errors), str(next(iter(errors.values()))))


def _unread(feeds: Sequence[Feed], seconds: float) -> Reading | Unreachable | None:
    unread = [feed for feed in feeds if not feed.listed]
    if not unread:
        return None
    errors = [feed.error for feed in unread if feed.error]
    return Unreachable(str(errors[0])) if errors else Reading(seconds)


def _freshness(feeds: Sequence[Feed], now: float, longest_silence: float) -> Live | Stale:
    age = max((now - feed.confirmed for feed in feeds), default=0.0)
    for feed in feeds:
        if feed.error is not None and now - feed.confirmed > STALE_AFTER:
            return Stale(age, str(feed.error))
        if feed.gap:
            return Stale(age, f"changes of {feed.kind.plural} were missed; they are read again")
    if age > longest_silence:
        return Stale(age, "the API server has fallen silent")
    return Live(age)
