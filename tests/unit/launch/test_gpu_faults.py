"""What the check of a server's GPUs has found, read from its container's end."""

from typing import Any

import msgspec
import pytest

from gpuspawner.kube.startup import StartingPod
from gpuspawner.launch.limits import hopeless
from gpuspawner.launch.trouble import About, Kind, Trouble
from gpuspawner.launch.troubles import troubles
from gpuspawner.offers.visible_gpus import CONTAINER, FEWER
from tests.unit.makers.starts import ended, waiting

SAID = "gpuspawner: 1 of 2 GPUs visible: Tesla T4\n"


def checked(name: str, **status: Any) -> tuple[Trouble, ...]:
    plain = {
        "metadata": {"name": "jupyter-ann"},
        "spec": {
            "restartPolicy": "OnFailure",
            "initContainers": [{"name": name}],
            "containers": [{"name": "notebook"}],
        },
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": name, **status}]},
    }
    return troubles(msgspec.convert(plain, StartingPod), [])


@pytest.mark.parametrize(
    ("said", "granted", "visible"),
    [
        (SAID, 2, 1),
        (f"sh: a warning\n{SAID}", 2, 1),
        ("gpuspawner: 0 of 12 GPUs visible: NVML error 18", 12, 0),
        ("gpuspawner: 99999 of 2 GPUs visible", 0, 0),
        ("", 0, 0),
    ],
)
def test_too_few_gpus_end_the_start_at_once(said: str, granted: int, visible: int) -> None:
    found = checked(CONTAINER, state=ended(FEWER, message=said))

    [trouble] = found
    assert trouble.kind is Kind.GPUS_MISSING
    assert trouble.about == About(container=CONTAINER, granted=granted, visible=visible)
    assert trouble.text == (said or "Error")
    failure = hopeless(found)
    assert failure
    assert failure.cause is trouble


def test_it_stays_so_when_the_kubelet_starts_the_check_again() -> None:
    again = {"restartCount": 1, "lastState": ended(FEWER, message=SAID)}
    for state in ({"state": {"running": {}}}, waiting("CrashLoopBackOff")):
        first, *_ = checked(CONTAINER, **again, **state)
        assert (first.kind, first.is_final) == (Kind.GPUS_MISSING, True)


@pytest.mark.parametrize(
    ("name", "code"), [(CONTAINER, 1), ("notebook-init", FEWER), (CONTAINER, 137)]
)
def test_other_ends_are_crashes(name: str, code: int) -> None:
    [trouble] = checked(name, state=ended(code, message=SAID))

    assert (trouble.kind, trouble.is_final) == (Kind.CRASHED, False)


def test_a_check_that_found_all_is_no_trouble() -> None:
    assert checked(CONTAINER, state=ended(0, "Completed")) == ()
