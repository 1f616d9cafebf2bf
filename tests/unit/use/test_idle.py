"""Whether a server uses its GPUs: what isn't certain isn't known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpuspawner.use.idle import DeviceUse, GPUUse, Window, use_of

ANN, BOB = ("hub", "jupyter-ann"), ("hub", "jupyter-bob")
NOW, HOUR = 1_800_000_000.0, 3600.0
LONG_AGO = datetime.fromtimestamp(NOW - 5 * HOUR, UTC)


def device(uuid: str = "GPU-1", used: float = 0.0, known: float = 1.0) -> DeviceUse:
    return DeviceUse((uuid, ""), used, known)


def window(**devices: list[DeviceUse]) -> Window:
    pods = {"ann": ANN, "bob": BOB}
    return Window(HOUR, NOW, {pods[name]: its for name, its in devices.items()})


def test_gpus_that_have_not_been_used_for_the_whole_window_are_unused() -> None:
    found = use_of(window(ann=[device("a"), device("b")]), ANN, 2, LONG_AGO)

    assert found == GPUUse(HOUR, 0.0)
    assert not found.is_used


def test_one_gpu_in_use_is_enough() -> None:
    found = use_of(window(ann=[device("a"), device("b", used=0.4)]), ANN, 2, LONG_AGO)

    assert found is not None
    assert found.is_used


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
def test_what_is_not_certain_is_not_known(devices: list[DeviceUse], gpus: int, why: str) -> None:
    assert use_of(window(ann=devices), ANN, gpus, LONG_AGO) is None, why


@pytest.mark.parametrize("began", [None, datetime.fromtimestamp(NOW - HOUR + 1, UTC)])
def test_a_pod_of_the_same_name_may_have_been_idle_before(began: datetime | None) -> None:
    assert use_of(window(ann=[device()]), ANN, 1, began) is None


def test_a_gpu_that_is_used_is_known_to_be_even_with_gaps_and_right_after_the_start() -> None:
    began = datetime.fromtimestamp(NOW - 60, UTC)

    found = use_of(window(ann=[device(used=0.9, known=0.1)]), ANN, 1, began)

    assert found is not None
    assert found.is_used


def test_nobody_knows_which_pod_uses_a_gpu_that_several_share() -> None:
    shared = window(ann=[device(used=0.9)], bob=[device(used=0.9)])

    assert use_of(shared, ANN, 1, LONG_AGO) is None


def test_a_shared_gpu_that_nobody_uses_is_unused_for_each() -> None:
    shared = window(ann=[device()], bob=[device()])

    assert use_of(shared, ANN, 1, LONG_AGO) == GPUUse(HOUR, 0.0)
