"""Everything that goes wrong with a start, from the pod and its events together."""

from __future__ import annotations

import msgspec

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.startup import StartingPod
from gpuspawner.launch.trouble import Kind
from gpuspawner.launch.troubles import troubles
from tests.unit.launch.found import PULL_FAILS, RESOLVE, RUNS, kinds
from tests.unit.launch.starts import NOTEBOOK, event, start, waiting, warning


def test_a_start_that_goes_well_is_in_no_trouble() -> None:
    assert troubles(StartingPod(), []) == ()
    assert troubles(start(node="gpu-1", notebook=RUNS), PULL_FAILS[:1]) == ()


def test_what_ends_the_start_comes_first_and_what_is_over_last() -> None:
    pod = start(node="gpu-1", notebook=waiting("ErrImagePull", RESOLVE))
    mount = warning("FailedMount", 'MountVolume.SetUp failed for volume "home" : x', 5)
    new = warning("New", "in new words", 50)

    assert kinds(troubles(pod, [new, mount])) == [
        Kind.IMAGE_MISSING,
        Kind.UNKNOWN,
        Kind.VOLUME_MOUNT,
    ]


def test_an_older_pods_troubles_are_not_its_own() -> None:
    older = event("Preempted", "Preempted by pod 81b2", 1, uid="older")

    assert troubles(start(), [older]) == ()


def test_a_pod_whose_lists_and_times_are_null_is_read() -> None:
    plain = {
        "metadata": {"creationTimestamp": None, "deletionTimestamp": None},
        "spec": {"containers": None, "initContainers": None, "volumes": None},
        "status": {
            "startTime": None,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": None}],
            "containerStatuses": [
                {"name": NOTEBOOK, "state": None, "lastState": {"terminated": {"exitCode": 1}}}
            ],
            "initContainerStatuses": None,
        },
    }
    said = {"reason": "Failed", "message": "", "count": None, "series": None, "eventTime": None}

    found = troubles(msgspec.convert(plain, StartingPod), [msgspec.convert(said, Event)])

    assert kinds(found) == [Kind.CONTAINER_CREATION]
