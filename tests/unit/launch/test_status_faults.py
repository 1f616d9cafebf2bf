"""What a container's status says is wrong."""

import msgspec
import pytest

from gpuspawner.kube.startup import StartingContainer, StartingContainerStatus, Terminated, Waiting
from gpuspawner.launch.evidence import Container
from gpuspawner.launch.status_faults import of_devices, of_end, of_waiting
from gpuspawner.launch.trouble import About, Fault, Kind

IMAGE = "quay.io/a:b"
RESOLVE = f'failed to resolve reference "{IMAGE}": {IMAGE}: not found'


@pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing"])
def test_a_container_that_waits_its_turn_is_in_no_trouble(reason) -> None:
    assert of_waiting(Waiting(reason), IMAGE) is None


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        ("ErrImagePull", RESOLVE, Kind.IMAGE_MISSING),
        (
            "ImagePullBackOff",
            f'Back-off pulling image "{IMAGE}": ErrImagePull: {RESOLVE}',
            Kind.IMAGE_MISSING,
        ),
        ("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"', Kind.PULL_BACK_OFF),
        ("ErrImageNeverPull", "", Kind.IMAGE_NEVER_PULLED),
        ("InvalidImageName", "", Kind.IMAGE_NAME),
        ("ImageInspectError", "odd", Kind.PULL_FAILED),
        ("RegistryUnavailable", "", Kind.REGISTRY_UNREACHABLE),
        ("SignatureValidationFailed", "", Kind.IMAGE_SIGNATURE),
    ],
)
def test_a_pull_that_fails_names_the_image(reason, message, kind) -> None:
    fault = of_waiting(Waiting(reason, message), IMAGE)

    assert (fault.kind, fault.about) == (kind, About(image=IMAGE))


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        ("CreateContainerConfigError", 'secret "a" not found', Kind.SECRET_MISSING),
        ("CreateContainerConfigError", "odd", Kind.CONTAINER_CONFIG),
        ("CreateContainerError", "odd", Kind.CONTAINER_CREATION),
        ("RunContainerError", "stderr: nvidia-container-cli: device error", Kind.GPU_DRIVER),
        ("CrashLoopBackOff", "back-off 10s restarting failed container", Kind.CRASH_LOOP),
        ("PostStartHookError", "", Kind.POST_START_HOOK),
        ("NewReason", "", Kind.UNKNOWN),
    ],
)
def test_a_container_that_does_not_start_tells_why(reason, message, kind) -> None:
    assert of_waiting(Waiting(reason, message), IMAGE).kind is kind


def test_a_device_that_is_broken_is_named() -> None:
    status = msgspec.convert(
        {
            "allocatedResourcesStatus": [
                {
                    "name": "nvidia.com/gpu",
                    "resources": [
                        {"resourceID": "GPU-1", "health": "Healthy"},
                        {"resourceID": "GPU-2", "health": "Unhealthy", "message": "Xid 79"},
                        {"resourceID": "GPU-3", "health": "Unhealthy"},
                        {"resourceID": "GPU-4", "health": "Unknown"},
                    ],
                },
                {"name": "claim:gpu", "resources": None},
            ]
        },
        StartingContainerStatus,
    )

    assert list(of_devices(status)) == [
        (Fault(Kind.DEVICE_BROKEN, About(resource="nvidia.com/gpu", name="GPU-2")), "Xid 79"),
        (Fault(Kind.DEVICE_BROKEN, About(resource="nvidia.com/gpu", name="GPU-3")), "Unhealthy"),
    ]


def container(*, is_init: bool = False, restarts: str | None = None) -> Container:
    return Container(0, StartingContainer("a", restart_policy=restarts), None, is_init)


@pytest.mark.parametrize(
    ("ended", "kind"),
    [
        (Terminated(137, reason="OOMKilled"), Kind.OUT_OF_MEMORY),
        (Terminated(1, reason="Error"), Kind.CRASHED),
        (Terminated(0, signal=9), Kind.CRASHED),
        (Terminated(0, reason="Completed"), Kind.ENDED),
        (Terminated(137, reason="ContainerStatusUnknown"), Kind.NODE_LOST),
        (
            Terminated(
                128, reason="StartError", message='exec: "a": executable file not found in $PATH'
            ),
            Kind.NO_SUCH_PROGRAM,
        ),
        (Terminated(128, reason="ContainerCannotRun", message="odd"), Kind.CONTAINER_CREATION),
    ],
)
def test_a_container_that_ended_tells_why(ended, kind) -> None:
    assert of_end(ended, container(), "Always").kind is kind


def test_an_init_container_that_has_done_its_work_is_in_no_trouble() -> None:
    assert of_end(Terminated(0), container(is_init=True), "Never") is None


@pytest.mark.parametrize(
    ("policy", "code", "is_final"),
    [
        ("Always", 1, False),
        ("Always", 0, False),
        ("OnFailure", 1, False),
        ("OnFailure", 0, True),
        ("Never", 1, True),
        ("Never", 0, True),
        ("", 1, False),
    ],
)
def test_an_end_is_final_if_the_kubelet_does_not_start_it_again(policy, code, is_final) -> None:
    assert of_end(Terminated(code), container(), policy).is_final is is_final


def test_a_sidecar_is_always_started_again() -> None:
    sidecar = container(is_init=True, restarts="Always")

    assert of_end(Terminated(1), sidecar, "Never") == Fault(Kind.CRASHED)


@pytest.mark.parametrize(
    ("own", "code", "is_final"),
    [("OnFailure", 1, False), ("OnFailure", 0, True), ("Always", 0, False), ("Never", 1, True)],
)
def test_a_container_s_own_policy_goes_before_the_pod_s(own, code, is_final) -> None:
    of_pod = "Always" if is_final else "Never"
    assert of_end(Terminated(code), container(restarts=own), of_pod).is_final is is_final


def test_a_container_with_rules_of_its_own_may_be_started_again() -> None:
    rules: list[object] = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    spec = StartingContainer("a", restart_policy="Never", restart_policy_rules=rules)

    assert of_end(Terminated(42), Container(0, spec, None, is_init=False), "Never") == Fault(
        Kind.CRASHED
    )
