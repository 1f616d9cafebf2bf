"""Whether the GPUs of a server are used: what isn't certain isn't known. When it is stopped."""

from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import Happened
from gpuspawner.use.idle_servers import DeviceUse, GPUUse, IdleStanding, Window, use_of

ANN, BOB = ("hub", "jupyter-ann"), ("hub", "jupyter-bob")
NOW, HOUR = 1_800_000_000.0, 3600.0
LONG_AGO = datetime.fromtimestamp(NOW - 5 * HOUR, UTC)


def device(uuid="GPU-1", used=0.0, known=1.0):
    return DeviceUse((uuid, ""), used, known)


def window(**devices):
    pods = {"ann": ANN, "bob": BOB}
    return Window(HOUR, NOW, {pods[name]: its for name, its in devices.items()})


@pytest.mark.parametrize(
    ("devices", "began", "used"),
    [
        ([device("a"), device("b")], LONG_AGO, 0.0),
        ([device("a"), device("b", used=0.4)], LONG_AGO, 0.4),
        ([device(used=0.9, known=0.1)], datetime.fromtimestamp(NOW - 60, UTC), 0.9),
    ],
    ids=["unused for the whole window", "one in use is enough", "with gaps, right after the start"],
)
def test_the_use_of_a_server_is_that_of_the_gpu_that_is_used_most(devices, began, used):
    found = use_of(window(ann=devices), ANN, len(devices), began)

    assert found == GPUUse(HOUR, used)
    assert found.is_used == (used > 0)


@pytest.mark.parametrize(
    ("devices", "gpus", "why"),
    [
        ([], 1, "no exporter speaks of its GPU"),
        ([device("a")], 2, "it speaks of one of two"),
        ([device("a"), device("b")], 1, "it says another pod's name"),
        ([device("a", known=0.94)], 1, "the exporter was down for a while"),
        ([device("a", used=-1.0, known=0.0)], 1, "it says what can't be"),
    ],
)
def test_what_is_not_certain_is_not_known(devices, gpus, why):
    assert use_of(window(ann=devices), ANN, gpus, LONG_AGO) is None, why


@pytest.mark.parametrize("began", [None, datetime.fromtimestamp(NOW - HOUR + 1, UTC)])
def test_a_pod_of_the_same_name_may_have_been_idle_before(began):
    assert use_of(window(ann=[device()]), ANN, 1, began) is None


def test_nobody_knows_which_pod_uses_a_gpu_that_several_share():
    shared = window(ann=[device(used=0.9)], bob=[device(used=0.9)])

    assert use_of(shared, ANN, 1, LONG_AGO) is None


def test_the_use_of_hundreds_of_servers_is_found_quickly_among_thousands_of_gpus():
    """A look finds out all of them, with few pauses in which the hub does something else."""
    devices = {("hub", str(it)): [device(str(it), used=0.9)] for it in range(20_000)}
    seen, began = Window(HOUR, NOW, devices), process_time()

    assert all(use_of(seen, ("hub", str(it)), 1, LONG_AGO) for it in range(500))
    assert process_time() - began < 1


def test_a_shared_gpu_that_nobody_uses_is_unused_for_each():
    shared = window(ann=[device()], bob=[device()])

    assert use_of(shared, ANN, 1, LONG_AGO) == GPUUse(HOUR, 0.0)


RULE = WhenIdle(after=3600, after_if_others_wait=1200, warning=600, keeps=2, kept=1800)
IDLE, BUSY = GPUUse(3600, 0.0), GPUUse(3600, 0.5)


def looks(*uses):
    standing, happened = IdleStanding(), []
    for now, use in uses:
        standing, more = standing.after(use, use, RULE, now)
        happened += more
    return standing, happened


def test_an_owner_is_warned_once_and_the_time_runs_from_then():
    standing, happened = looks((0, IDLE), (60, IDLE), (599, IDLE))

    assert happened == [Happened.IDLE, Happened.WARNED]
    assert standing.stops_at == 600


def test_what_is_not_known_any_more_ends_the_warning():
    standing, happened = looks((0, IDLE), (60, None), (120, IDLE))

    assert standing.stops_at == 120 + 600
    assert happened.count(Happened.WARNED) == 2


def test_a_kept_server_stays_for_its_time_whatever_window_counts_meanwhile():
    """Nobody waits in line for a while, so the longer time counts, in which it was used."""
    kept = looks((0, IDLE))[0].keep(RULE, 100)

    used, _ = kept.after(BUSY, IDLE, RULE, 400)
    during, nothing = used.after(IDLE, IDLE, RULE, 1899)

    assert (during.stops_at, nothing) == (None, ())
    later, happened = during.after(IDLE, IDLE, RULE, 1900)
    assert (later.stops_at, happened) == (2500, (Happened.IDLE, Happened.WARNED))


def test_it_can_be_kept_so_many_times_until_it_is_used_again():
    standing, _ = looks((0, IDLE))
    for moment in (10_000, 20_000):
        assert standing.may_keep(RULE)
        standing, _ = standing.keep(RULE, moment).after(IDLE, IDLE, RULE, moment + 1800)

    assert not standing.may_keep(RULE)
    used, _ = standing.after(BUSY, BUSY, RULE, 30_000)
    again, _ = used.after(IDLE, IDLE, RULE, 40_000)
    assert again.may_keep(RULE)


def test_a_use_from_before_it_was_kept_which_a_longer_time_shows_does_not_count_as_use_again():
    """Else, owners could keep servers without end when others wait now and then."""
    kept = looks((0, IDLE))[0].keep(RULE, 100)

    for lately in IDLE, None:
        assert kept.after(BUSY, lately, RULE, 400) == (kept, ())
    again, happened = kept.after(BUSY, BUSY, RULE, 400)
    assert (again.kept, happened) == (0, (Happened.USED,))


@given(st.lists(st.tuples(st.floats(0, 500), st.sampled_from([IDLE, BUSY, None, "keep"]))))
def test_a_stop_always_has_a_warning_before_it_that_lasted(steps):
    standing, now, unused_since = IdleStanding(), 0.0, None
    for pause, seen in steps:
        now += pause
        if seen == "keep":
            if standing.may_keep(RULE):
                standing, unused_since = standing.keep(RULE, now), None
            continue
        assert seen is None or isinstance(seen, GPUUse)
        standing, happened = standing.after(seen, seen, RULE, now)
        if Happened.WARNED in happened:
            unused_since = now
        if seen is not IDLE:
            unused_since = None
        if standing.may_stop(now):
            assert unused_since is not None
            assert now - unused_since >= RULE.warning
