"""Idle servers: when a server is given back whose GPUs aren't used. Pure.

The owner of an idle server is warned, may keep it a few times, and then it ends. Times are in
seconds of a clock that never goes back. What isn't known starts no warning, and ends one: then the
culler's own rule holds again.
"""

import msgspec
from msgspec.structs import replace

from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import Happened
from gpuspawner.use.gpu_use import GPUUse, UseState


class IdleStanding(msgspec.Struct, frozen=True):
    """How a server stands.

    Attributes:
        stops_at: Until when its owner may answer; None if there is no warning.
        kept_until: Until when its owner keeps it.
        kept: How often its owner has kept it since it was used.
    """

    state: UseState = UseState.UNKNOWN
    stops_at: float | None = None
    kept_until: float = 0.0
    kept: int = 0


def after(
    before: IdleStanding, use: GPUUse | None, lately: GPUUse | None, rule: WhenIdle, now: float
) -> tuple[IdleStanding, tuple[Happened, ...]]:
    """Return how a server stands now, and what has happened to it.

    *use* is that of the rule's time; None if it isn't known. *lately* is that of its shorter time,
    which counts while others wait. Before its owner kept it, the server was unused for at least
    that long, so any use in that time came later. The longer time may still show an older use.
    """
    state = UseState.of(use)
    if state is UseState.UNKNOWN:
        return replace(before, state=state, stops_at=None), ()
    if state is UseState.USED:
        # The time that it was kept for stays promised.
        still = replace(before, state=state, stops_at=None)
        if before.kept and UseState.of(lately) is UseState.USED:
            return replace(still, kept=0), (Happened.USED,)
        return still, ()
    if now < before.kept_until or before.stops_at is not None:
        return replace(before, state=state), ()
    warned = replace(before, state=state, stops_at=now + rule.warning)
    return warned, (Happened.IDLE, Happened.WARNED)


def may_keep(standing: IdleStanding, rule: WhenIdle) -> bool:
    """Whether the owner of a server that will be stopped may keep it."""
    return standing.stops_at is not None and standing.kept < rule.keeps


def may_stop(standing: IdleStanding, looked_at: float) -> bool:
    """Whether a server may be stopped; *looked_at* is when the last look began.

    A look reads what was before it. So only one that began when the owner's time was over says that
    nothing was used until then.
    """
    return standing.stops_at is not None and looked_at >= standing.stops_at


def keep(standing: IdleStanding, rule: WhenIdle, now: float) -> IdleStanding:
    """Keep a server for a while; its owner is warned again after that, if it isn't used."""
    return replace(standing, stops_at=None, kept_until=now + rule.kept, kept=standing.kept + 1)
