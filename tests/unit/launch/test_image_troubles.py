"""What goes wrong with a pull, from the pod and its events together."""

from __future__ import annotations

from gpuspawner.kube.moments import moment
from gpuspawner.launch.trouble import About, Kind
from gpuspawner.launch.troubles import troubles
from tests.unit.launch.found import PULL_FAILS, RESOLVE, only
from tests.unit.launch.starts import (
    CLOUD_METADATA,
    IMAGE,
    NOTEBOOK,
    at,
    event,
    start,
    waiting,
    warning,
)


def test_an_image_that_does_not_exist_is_one_final_trouble_beside_the_back_off() -> None:
    pod = start(node="gpu-1", notebook=waiting("ErrImagePull", RESOLVE))
    missing, back_off = troubles(pod, PULL_FAILS)

    assert (missing.kind, missing.is_final) == (Kind.IMAGE_MISSING, True)
    assert missing.about == About(container=NOTEBOOK, image=IMAGE)
    assert (missing.began, missing.last) == (moment(at(12)), moment(at(12)))
    assert missing.text == RESOLVE
    assert (back_off.kind, back_off.is_final) == (Kind.PULL_BACK_OFF, False)
    assert back_off.about == missing.about


def test_a_pull_that_succeeds_at_last_is_over() -> None:
    pulled = event("Pulled", f'Successfully pulled image "{IMAGE}"', 40, container=NOTEBOOK)
    found = troubles(start(node="gpu-1"), [*PULL_FAILS, pulled])

    assert {it.is_over for it in found} == {True}
    assert {it.is_final for it in found} == {False}


def test_the_pull_of_one_container_does_not_end_that_of_another() -> None:
    pulled = event("Pulled", 'Successfully pulled image "a"', 9, container=CLOUD_METADATA)

    assert troubles(start(node="gpu-1"), [*PULL_FAILS, pulled])[0].is_final


def test_attempts_add_up_over_events_that_are_told_again() -> None:
    first = warning("Failed", f'Failed to pull image "{IMAGE}": dial tcp', 1, container=NOTEBOOK)
    again = warning(
        "Failed", f'Failed to pull image "{IMAGE}": dial tcp', 1, container=NOTEBOOK, count=3
    )
    other = warning(
        "Failed", f'Failed to pull image "{IMAGE}": i/o timeout', 9, container=NOTEBOOK, count=2
    )

    trouble = only(troubles(start(), [first, again, other]))

    assert (trouble.kind, trouble.attempts) == (Kind.REGISTRY_UNREACHABLE, 5)
    assert trouble.texts == (first.message, other.message)
