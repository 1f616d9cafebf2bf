"""Which refusals let a start wait in line, or keep its place there."""

from gpuspawner.preflight.decision import Decision, Reason, Refuse, Start
from gpuspawner.preflight.fronts import STAYS
from gpuspawner.spawn.policing import LIMIT, UNCOUNTED
from gpuspawner.spawn.refusal import UNREACHABLE, Refusal

TAKEN = frozenset({Reason.TAKEN, Reason.BUSY, Reason.TRY_AGAIN})
"""Why a start fails that others were faster than."""
PASSES = frozenset({UNREACHABLE, UNCOUNTED})
"""Why a start fails that says nothing about its server."""


def offers_line(refusal: Refusal) -> bool:
    """Whether there may be a line for a start that was refused before it began."""
    return bool(refusal.on_form.place) or refusal.slug == Reason.TRY_AGAIN


def lets_join(refusal: Refusal, decision: Decision) -> bool:
    """Whether a refused start may join the line; *decision* is about its pod alone.

    If it isn't known whether there is room, only a start that would stay in line may: the line lets
    others go at once, so they would come back again and again.
    """
    if refusal.slug != Reason.TRY_AGAIN:
        return bool(refusal.on_form.place) or refusal.slug == LIMIT
    if isinstance(decision, Refuse):
        return decision.reason in STAYS
    return decision == Start(decision.grant)


def lets_stay(refusal: Refusal) -> bool:
    """Whether a start that has a place keeps it."""
    return bool(refusal.on_form.place) or refusal.slug == LIMIT or refusal.slug in STAYS
