"""What goes wrong with a volume, from the pod and its events together."""

from __future__ import annotations

import pytest

from gpuspawner.launch.trouble import About, Kind
from gpuspawner.launch.troubles import troubles
from tests.unit.launch.found import only
from tests.unit.launch.starts import condition, start, warning


@pytest.mark.parametrize("bound", [{"pvc-1": "claim-ann"}, {}])
def test_a_volume_in_use_names_the_claim_and_who_has_it(bound: dict[str, str]) -> None:
    message = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) jupyter-bob'
    trouble = only(troubles(start(), [warning("FailedAttachVolume", message, 5)], bound))

    assert trouble.kind is Kind.VOLUME_IN_USE
    assert trouble.about == About(volume="pvc-1", claim="claim-ann")
    assert (trouble.holders, trouble.is_final) == (("jupyter-bob",), False)


def test_a_volume_of_the_pod_that_has_no_claim_gets_none() -> None:
    volumes = [
        {"name": "home", "persistentVolumeClaim": {"claimName": "claim-ann"}},
        {"name": "course"},
    ]
    message = 'MountVolume.SetUp failed for volume "course" : configmap "c" not found'
    trouble = only(troubles(start(volumes=volumes), [warning("FailedMount", message)]))

    assert trouble.about == About(volume="course", name="c")


def test_a_volume_trouble_is_over_once_a_container_is_next() -> None:
    events = [warning("FailedMount", 'MountVolume.SetUp failed for volume "home" : x', 5)]
    sandbox = [condition("PodReadyToStartContainers", since=9)]

    assert not only(troubles(start(node="gpu-1"), events)).is_over
    assert only(troubles(start(node="gpu-1", conditions=sandbox), events)).is_over
