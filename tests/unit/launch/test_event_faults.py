"""What an event says is wrong, and what ends that."""

import pytest

from gpuspawner.launch.event_faults import Until, cancels, of_event
from gpuspawner.launch.trouble import Kind
from tests.unit.launch.starts import event, warning

ASSIGNED = "Successfully assigned hub/jupyter-ann to gpu-1"


@pytest.mark.parametrize(
    ("reason", "message", "kind", "until"),
    [
        ("Failed", 'Failed to pull image "a:1": manifest unknown', Kind.IMAGE_MISSING, Until.IMAGE),
        ("Failed", "Error: ErrImagePull", Kind.PULL_BACK_OFF, Until.IMAGE),
        ("BackOff", 'Back-off pulling image "a:1"', Kind.PULL_BACK_OFF, Until.IMAGE),
        (
            "InspectFailed",
            'Failed to apply default image tag "A b": couldn\'t parse image name',
            Kind.IMAGE_NAME,
            Until.IMAGE,
        ),
        (
            "ErrImageNeverPull",
            'Container image "a" is not present with pull policy of Never',
            Kind.IMAGE_NEVER_PULLED,
            Until.IMAGE,
        ),
        (
            "FailedToRetrieveImagePullSecret",
            "Unable to retrieve some image pull secrets (regcred)",
            Kind.PULL_SECRET,
            Until.IMAGE,
        ),
        ("Failed", 'Error: secret "a" not found', Kind.SECRET_MISSING, Until.RUNS),
        ("Failed", "Error: odd", Kind.CONTAINER_CREATION, Until.RUNS),
        (
            "BackOff",
            "Back-off restarting failed container notebook in pod jupyter-ann_hub(5f1c)",
            Kind.CRASH_LOOP,
            Until.READY,
        ),
        ("FailedPostStartHook", "PostStartHook failed", Kind.POST_START_HOOK, Until.READY),
        ("Unhealthy", "Readiness probe failed: x", Kind.NOT_READY, Until.READY),
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "a" : x',
            Kind.VOLUME_MOUNT,
            Until.CONTAINERS,
        ),
        ("FailedAttachVolume", "AttachVolume.Attach failed", Kind.VOLUME_ATTACH, Until.CONTAINERS),
        ("FailedMapVolume", "MapVolume.SetUpDevice failed", Kind.VOLUME_MOUNT, Until.CONTAINERS),
        (
            "FailedCreatePodSandBox",
            'no runtime for "nvidia" is configured',
            Kind.RUNTIME,
            Until.CONTAINERS,
        ),
        ("NetworkNotReady", "network is not ready", Kind.NETWORK, Until.CONTAINERS),
        (
            "FailedPrepareDynamicResources",
            "prepare dynamic resources: error preparing devices for claim 148d",
            Kind.DEVICES_UNPREPARED,
            Until.CONTAINERS,
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
                " Requested: 1, Available: 0, which is unexpected"
            ),
            Kind.DEVICE_TAKEN,
            Until.NEVER,
        ),
        ("Evicted", "The node had condition: [DiskPressure]. ", Kind.NODE_PRESSURE, Until.NEVER),
        ("OutOfcpu", "Node didn't have enough resource: cpu", Kind.NODE_FULL, Until.NEVER),
        ("NodeNotReady", "Node is not ready", Kind.NODE_LOST, Until.LATER),
        ("NewWarning", "in new words", Kind.UNKNOWN, Until.LATER),
    ],
)
def test_a_warning_tells_what_is_wrong_and_what_ends_it(reason, message, kind, until) -> None:
    faults, found = of_event(warning(reason, message))

    assert [it.kind for it in faults] == [kind]
    assert found is until


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Scheduled", ASSIGNED),
        ("Pulling", 'Pulling image "a"'),
        ("Killing", "Stopping container notebook"),
        ("Evicted", "Evicted pod: Underutilized"),
        ("", ""),
    ],
)
def test_what_is_normal_is_no_trouble(reason, message) -> None:
    assert of_event(event(reason, message))[0] == []


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu."),
        ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        ("DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted"),
        ("MissingClusterDNS", "kubelet does not have ClusterDNS IP configured"),
    ],
)
def test_warnings_that_are_read_elsewhere_or_harmless_are_no_trouble(reason, message) -> None:
    assert of_event(warning(reason, message))[0] == []


def test_a_preempted_pod_never_starts() -> None:
    faults, _ = of_event(event("Preempted", "Preempted by pod 81b2 on node gpu-1"))

    assert [(it.kind, it.is_final) for it in faults] == [(Kind.PREEMPTED, True)]


def test_a_pod_that_was_only_taken_back_may_still_start() -> None:
    message = "Preempted by pod 81b2 on node gpu-1 (in kube-scheduler memory)"
    faults, until = of_event(event("Preempted", message))

    assert [(it.kind, it.is_final, until) for it in faults] == [
        (Kind.PREEMPTED, False, Until.LATER)
    ]


@pytest.mark.parametrize("reason", ["TaintManagerEviction", "DeviceTaintManagerEviction"])
def test_a_deletion_for_a_taint_can_be_cancelled(reason) -> None:
    marked = event(reason, "Marking for deletion Pod hub/jupyter-ann")
    cancelled = event(reason, "Cancelling deletion of Pod hub/jupyter-ann")

    assert [it.kind for it in of_event(marked)[0]] == [Kind.TAINTED]
    assert of_event(cancelled)[0] == []
    assert (cancels(marked), cancels(cancelled)) == (False, True)
