"""The health of the live view: how far it can be trusted.

A verdict counts only while the view is `Live`. In every other state it is *unknown*, and the server
starts unchecked; policy still applies.
"""

import math
import time
from collections.abc import Callable, Sequence

import msgspec

from gpuspawner.cluster.reflector import Reflector


class Reading(msgspec.Struct, frozen=True):
    """The first list isn't complete yet after some seconds, so nothing is known to be absent."""

    seconds: float


class Live(msgspec.Struct, frozen=True):
    """Everything is listed and watched.

    Attributes:
        age: Seconds since the API server confirmed the least recently confirmed kind.
    """

    age: float


class Stale(msgspec.Struct, frozen=True):
    """The view was live, but it may be out of date now.

    Attributes:
        age: Seconds since the last confirmation, or since the API server had sent all changes.
        why: What happened, on one line.
    """

    age: float
    why: str


class Forbidden(msgspec.Struct, frozen=True):
    """The API server doesn't allow the hub to list or watch something.

    Attributes:
        kinds: The resources, as RBAC names them: ``("nodes", "pods")``.
        text: The API server's message, on one line.
    """

    kinds: tuple[str, ...]
    text: str


class Unreachable(msgspec.Struct, frozen=True):
    """No list has ever succeeded: no configuration, no contact or no valid credentials.

    `text` is the last error, on one line.
    """

    text: str


Health = Reading | Live | Stale | Forbidden | Unreachable

# Seconds. A broken watch usually resumes within one, and until then the view isn't called stale.
# If it takes longer, the view is stale until the API server has sent what was missed.
STALE_AFTER = 10.0
# Seconds. An API server that is back has sent what was missed three seconds later (see `Backoff`).
# If watches break before that again and again, nobody knows what is still missing.
STALE_IF_BEHIND = 30.0
# Seconds. How long an optional kind may take to be read again, before it counts as unknown. Without
# this limit, one whose watches break again and again would keep all starts waiting.
REREAD_SECONDS = 10.0


def health_of(reflectors: Sequence[Reflector], since: float, silence: float) -> Health:
    """The health of a view that follows these kinds.

    What is missing of an optional one makes verdicts unknown. So the view is stale, and starts
    wait, while such a kind is read again; but not for one that the hub may not read any more, nor
    for one that fails on while the others work.

    Args:
        reflectors: One for each kind.
        since: When reading began, by ``time.monotonic``.
        silence: Seconds without a byte after which a watch is started again.
    """
    now = time.monotonic()
    required = [it for it in reflectors if it.kind.required]
    optional = [it for it in reflectors if not it.kind.required]
    return (
        _forbidden(required)
        or _unread(required, now - since)
        or _reread(optional, now, _back_since(required))
        or _freshness(required, now, silence + STALE_AFTER)
    )


def is_forbidden(reflector: Reflector) -> bool:
    """Whether the API server doesn't allow the hub to read this kind.

    If it has allowed it before, it may just be starting (see `Backoff.doubt`).
    """
    is_in_doubt = reflector.listed and not reflector.gap
    return reflector.error is not None and reflector.error.status == 403 and not is_in_doubt


def is_broken(reflector: Reflector) -> bool:
    """Whether no watch of this kind works, or none has caught up, for longer than a moment.

    That isn't so for what the hub may not read, nor for an API that the server lacks.
    """
    if reflector.error is None or reflector.absent or is_forbidden(reflector):
        return False
    return _is_behind(reflector, time.monotonic())


def _is_behind(reflector: Reflector, now: float) -> bool:
    outage = max(reflector.outage, now - reflector.lost)
    return outage > STALE_AFTER or now - reflector.behind > STALE_IF_BEHIND


def is_gone(reflector: Reflector) -> bool:
    """Whether the API server lacks this kind now, by its last answer."""
    return reflector.error is not None and reflector.error.status == 404


def is_open(reflector: Reflector) -> bool:
    """Whether reading this kind has neither succeeded nor failed yet."""
    return not reflector.listed and reflector.error is None


def _forbidden(reflectors: Sequence[Reflector]) -> Forbidden | None:
    errors = {it.kind.plural: it.error for it in reflectors if is_forbidden(it)}
    if not errors:
        return None
    return Forbidden(tuple(errors), str(next(iter(errors.values()))))


def _unread(reflectors: Sequence[Reflector], seconds: float) -> Reading | Unreachable | None:
    unread = [it for it in reflectors if not it.listed]
    if not unread:
        return None
    errors = [it.error for it in unread if it.error]
    return Unreachable(str(errors[0])) if errors else Reading(seconds)


def _reread(optional: Sequence[Reflector], now: float, back: float) -> Stale | None:
    for it in optional:
        if now - _expected_since(it, back) <= REREAD_SECONDS:
            return Stale(now - it.confirmed, _missed(it))
    return None


def _expected_since(it: Reflector, back: float) -> float:
    """Since when an optional kind should soon be known again; infinitely long ago if it needn't.

    *back* is when nodes and pods were known again after an outage: this kind is asked for soon.
    """
    if not it.listed or is_forbidden(it):
        return -math.inf
    if it.gap:
        return max(it.gap_since, back)
    if not it.distrusted:
        return -math.inf
    return max(it.returned, back) if math.isinf(it.lost) else back


def _back_since(required: Sequence[Reflector]) -> float:
    return max((it.recovered for it in required if it.missed > STALE_AFTER), default=-math.inf)


def _missed(reflector: Reflector) -> str:
    return f"changes of {reflector.kind.plural} were missed; they are read again"


def _freshness(reflectors: Sequence[Reflector], now: float, longest_silence: float) -> Live | Stale:
    age = max((now - it.confirmed for it in reflectors), default=0.0)
    for reflector in reflectors:
        if reflector.error is not None and _is_behind(reflector, now):
            return Stale(max(age, now - reflector.behind), str(reflector.error))
        if reflector.gap:
            return Stale(age, _missed(reflector))
    if age > longest_silence:
        return Stale(age, "the API server has fallen silent")
    return Live(age)


class ContactClock:
    """A clock that stops while contact with the API server is lost.

    In that time a trouble may end, a node come or an autoscaler answer, and nobody hears of it.
    Call `tick` at each change of the live view, and at least once a second.

    Attributes:
        seconds: How many seconds with contact have gone by since it was made.
    """

    def __init__(self, lost_contact: Callable[[], bool]) -> None:
        self._lost_contact = lost_contact
        self.seconds = 0.0
        self._ticked = time.monotonic()

    def tick(self) -> None:
        """Let the time since the last tick count, if there is contact."""
        now = time.monotonic()
        if not self._lost_contact():
            self.seconds += now - self._ticked
        self._ticked = now
