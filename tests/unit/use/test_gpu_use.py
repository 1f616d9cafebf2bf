"""Whether the GPUs of a server are used: what isn't certain isn't known."""

from datetime import UTC, datetime
from time import process_time

import pytest

from gpuspawner.use.gpu_use import DeviceUse, GPUUse, Window, use_of

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
