"""Which refusals let a start wait in line, or keep its place there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpuspawner.line.front_of_line import STAYS, needs_a_place
from gpuspawner.preflight.decision import Decision, Reason
from gpuspawner.start.host import Host, log_name
from gpuspawner.start.policing import LIMIT, UNCOUNTED
from gpuspawner.start.refusal import UNREACHABLE, Refusal, is_to_pass

PASSES = frozenset({UNREACHABLE, UNCOUNTED})
"""Why a start fails that says nothing about its server."""
HELD_BACK = frozenset({LIMIT, UNCOUNTED})
"""Why policies let somebody who has a place wait until they allow the server."""


@contextmanager
def deciding(spawner: Host) -> Iterator[None]:
    """Log a fault in a decision about the line: the start goes on as if nobody could wait."""
    try:
        yield
    except Exception as error:
        if is_to_pass(error):
            raise
        spawner.log.exception("No decision whether %s may wait in line", log_name(spawner))


def lets_join(refusal: Refusal, decide: Callable[[], Decision]) -> bool:
    """Whether a refused start may join the line.

    The line lets some starts go at once. If it isn't clear whether there is room for such a start,
    it would come back again and again. So *decide*, which decides about its pod at this moment, is
    asked then, and only then.
    """
    if refusal.slug == Reason.TRY_AGAIN:
        return needs_a_place(decide())
    return bool(refusal.on_form.place) or refusal.slug == LIMIT


def lets_stay(refusal: Refusal) -> bool:
    """Whether a start that has a place keeps it."""
    return bool(refusal.on_form.place) or refusal.slug in HELD_BACK | STAYS
