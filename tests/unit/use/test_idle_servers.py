"""A server is stopped only after a warning that its owner could answer."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import Happened
from gpuspawner.use.gpu_use import GPUUse, UseState
from gpuspawner.use.idle_servers import IdleStanding, after, keep, may_keep, may_stop

RULE = WhenIdle(after=3600, after_if_others_wait=1200, warning=600, keeps=2, kept=1800)
IDLE, BUSY = GPUUse(3600, 0.0), GPUUse(3600, 0.5)


def looks(*uses):
    standing, happened = IdleStanding(), []
    for now, use in uses:
        standing, more = after(standing, use, use, RULE, now)
        happened += more
    return standing, happened


def test_an_owner_is_warned_once_and_the_time_runs_from_then():
    standing, happened = looks((0, IDLE), (60, IDLE), (599, IDLE))

    assert happened == [Happened.IDLE, Happened.WARNED]
    assert (standing.state, standing.stops_at) == (UseState.UNUSED, 600)


def test_what_is_not_known_any_more_ends_the_warning():
    standing, happened = looks((0, IDLE), (60, None), (120, IDLE))

    assert standing.stops_at == 120 + 600
    assert happened.count(Happened.WARNED) == 2


def test_a_kept_server_stays_for_its_time_whatever_window_counts_meanwhile():
    """Nobody waits in line for a while, so the longer time counts, in which it was used."""
    kept = keep(looks((0, IDLE))[0], RULE, 100)

    used, _ = after(kept, BUSY, IDLE, RULE, 400)
    during, nothing = after(used, IDLE, IDLE, RULE, 1899)

    assert (during.stops_at, nothing) == (None, ())
    later, happened = after(during, IDLE, IDLE, RULE, 1900)
    assert (later.stops_at, happened) == (2500, (Happened.IDLE, Happened.WARNED))


def test_it_can_be_kept_so_many_times_until_it_is_used_again():
    standing, _ = looks((0, IDLE))
    for moment in (10_000, 20_000):
        assert may_keep(standing, RULE)
        standing, _ = after(keep(standing, RULE, moment), IDLE, IDLE, RULE, moment + 1800)

    assert not may_keep(standing, RULE)
    used, _ = after(standing, BUSY, BUSY, RULE, 30_000)
    again, _ = after(used, IDLE, IDLE, RULE, 40_000)
    assert may_keep(again, RULE)


def test_a_use_from_before_it_was_kept_which_a_longer_time_shows_does_not_count_as_use_again():
    """Else, owners could keep servers without end when others wait now and then."""
    kept = keep(looks((0, IDLE))[0], RULE, 100)

    for lately in IDLE, None:
        assert after(kept, BUSY, lately, RULE, 400) == (replace(kept, state=UseState.USED), ())
    again, happened = after(kept, BUSY, BUSY, RULE, 400)
    assert (again.kept, happened) == (0, (Happened.USED,))


@given(st.lists(st.tuples(st.floats(0, 500), st.sampled_from([IDLE, BUSY, None, "keep"]))))
def test_a_stop_always_has_a_warning_before_it_that_lasted(steps):
    standing, now, unused_since = IdleStanding(), 0.0, None
    for pause, seen in steps:
        now += pause
        if seen == "keep":
            if may_keep(standing, RULE):
                standing, unused_since = keep(standing, RULE, now), None
            continue
        assert seen is None or isinstance(seen, GPUUse)
        standing, happened = after(standing, seen, seen, RULE, now)
        if Happened.WARNED in happened:
            unused_since = now
        if seen is not IDLE:
            unused_since = None
        if may_stop(standing, now):
            assert unused_since is not None
            assert now - unused_since >= RULE.warning
