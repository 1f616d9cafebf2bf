"""What is wrong with a container; an id with a number names the public thread."""

import msgspec
import pytest

from gpuspawner.kube.startup import (
    StartingContainer,
    StartingContainerStatus,
    StartingPod,
    Terminated,
    Waiting,
)
from gpuspawner.offers.visible_gpus import CONTAINER, FEWER
from gpuspawner.troubles.container_faults import (
    of_config,
    of_devices,
    of_end,
    of_probe,
    of_sandbox,
    of_start,
    of_waiting,
)
from gpuspawner.troubles.evidence import SeenContainer
from gpuspawner.troubles.giving_up import hopeless
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.trouble import About, Exit, Fault, Kind
from tests.unit.makers.starts import ended, waiting
from tests.unit.makers.trouble_tables import meaning


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ('secret "hub-token" not found', Kind.SECRET_MISSING, "hub-token"),
        ('secrets "hub-token" not found', Kind.SECRET_MISSING, "hub-token"),
        ('configmap "course" not found', Kind.CONFIG_MAP_MISSING, "course"),
        ("couldn't find key api-token in Secret hub/tokens", Kind.KEY_MISSING, "api-token"),
        ("couldn't find key a in ConfigMap hub/course", Kind.KEY_MISSING, "a"),
        ("references non-existent secret key: tls.crt", Kind.KEY_MISSING, "tls.crt"),
        ("configmap references non-existent config key: a", Kind.KEY_MISSING, "a"),
        ('environment variable key "A" not found in file "/e"', Kind.KEY_MISSING, "A"),
    ],
)
def test_what_is_missing_is_named_and_may_still_come(text, kind, name):
    fault = of_config(text)

    assert (fault.kind, fault.about.name, fault.is_final) == (kind, name, False)


@pytest.mark.parametrize(
    "text",
    [
        (
            'container has runAsNonRoot and image will run as root (pod: "jupyter-ann_hub(5f1c)",'
            " container: notebook)"
        ),
        "container's runAsUser (0) breaks non-root policy",
    ],
)
def test_an_image_that_runs_as_root_never_starts(text):
    assert of_config(text) == Fault(Kind.RUNS_AS_ROOT, is_final=True)


TASK = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
RUNC = f"{TASK}runc create failed: unable to start container process: "
HOOK = "error during container init: error running hook #0: error running hook: exit status 1, "


STARTS = {
    (Kind.NO_SUCH_PROGRAM, True): {
        "containerd": (
            f'{RUNC}exec: "start-singleuser.sh": executable file not found in $PATH: unknown'
        ),
        "pangeo-data/pangeo#633": (
            'failed to start container "notebook": Error response from daemon: OCI runtime create'
            ' failed: container_linux.go:345: starting container process caused "exec:'
            ' \\"start-singleuser.sh\\": executable file not found in $PATH": unknown'
        ),
        "no such file": (
            f'{RUNC}exec: "/srv/start": stat /srv/start: no such file or directory: unknown'
        ),
        "not executable": f'{RUNC}exec: "/srv/start": permission denied: unknown',
        "/srv": f'{RUNC}exec: "/srv": is a directory',
        "crun": "executable file `start.sh` not found in $PATH: No such file or directory",
        "no command": "no command specified",
    },
    (Kind.NODE_SOFTWARE, False): {
        "rancher/k3os#702": (
            "failed to create containerd container: get apparmor_parser version: exec:"
            ' "apparmor_parser": executable file not found in $PATH'
        ),
        "no profiles": (
            f"{RUNC}error during container init: unable to apply apparmor profile: apparmor failed"
            " to apply profile: write /proc/self/attr/apparmor/exec: no such file or directory"
        ),
        "runc is gone": f'{TASK}unable to retrieve OCI runtime error: exec: "runc": executable file'
        " not found in $PATH",
        "its path is": f"{TASK}fork/exec /usr/bin/crun: no such file or directory: unknown",
        "its copy is": f"{RUNC}exec /proc/self/fd/6: no such file or directory: unknown",
    },
    (Kind.IMAGE_PLATFORM, True): {"arm64": "exec /usr/bin/tini: exec format error"},
    (Kind.GPU_DRIVER, False): {
        "getumbrel/llama-gpt#132": (
            f"{RUNC}{HOOK}stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli:"
            " initialization error: nvml error: driver not loaded: unknown"
        ),
        "cdi": (
            "failed to generate container spec: CDI device injection failed: unresolvable CDI"
            " devices nvidia.com/gpu=0"
        ),
    },
    (Kind.OUT_OF_MEMORY, False): {
        "memory": f"{RUNC}container init was OOM-killed (memory limit too low?): unknown"
    },
    (Kind.DISK_FULL, False): {
        "disk": "failed to create snapshot: write /var/lib/x: no space left on device"
    },
    (Kind.DEVICE_BROKEN, False): {
        "device plugin": "device plugin PreStartContainer rpc failed with err: x"
    },
    (Kind.SECRET_MISSING, False): {"configuration": 'secret "a" not found'},
}


@pytest.mark.parametrize(("text", "kind", "is_final"), meaning(STARTS))
def test_the_text_tells_why_a_container_is_not_started(text, kind, is_final):
    fault = of_start(text)

    assert (fault.kind, fault.is_final) == (kind, is_final)


def test_a_volume_that_does_not_suit_the_image_says_nothing_of_the_node():
    mounting = "mount /var/lib/kubelet/pods/1/volume-subpaths/a:/etc/a (via /proc/self/fd/6)"

    assert of_start(f"{RUNC}error during container init: {mounting}: not a directory") is None


SANDBOXES = {
    (Kind.RUNTIME, "nvidia"): {
        "NVIDIA/gpu-operator#549": (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox"
            ' runtime: no runtime for "nvidia" is configured'
        ),
        "docker": 'RuntimeHandler "nvidia" not supported',
    },
    (Kind.NETWORK, ""): {
        "no address": (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network"
            ' for sandbox "1": plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed'
            " to assign an IP address to container"
        )
    },
    (Kind.NODE_SOFTWARE, ""): {
        "runc is gone": 'failed to create shim: exec: "runc": executable file not found in $PATH'
    },
    (Kind.DISK_FULL, ""): {
        "no space": "failed to setup network for sandbox: write /x: no space left on device"
    },
    (Kind.SANDBOX, ""): {
        "NVIDIA/gpu-operator#549, before": (
            "Failed to create pod sandbox: rpc error: code = Unavailable desc = connection error:"
            ' desc = "transport: Error while dialing dial unix /run/containerd/containerd.sock:'
            ' connect: connection refused"'
        )
    },
}


@pytest.mark.parametrize(("text", "kind", "name"), meaning(SANDBOXES))
def test_a_missing_sandbox_may_still_come(text, kind, name):
    fault = of_sandbox(text)

    assert (fault.kind, fault.about.name, fault.is_final) == (kind, name, False)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Readiness probe failed: HTTP probe failed with statuscode: 503", Kind.NOT_READY),
        ("Startup probe failed: connection refused", Kind.NOT_READY),
        ("Liveness probe failed: connection refused", Kind.NOT_ALIVE),
        ("odd", Kind.NOT_READY),
    ],
)
def test_a_probe_tells_what_it_is_for(text, kind):
    assert of_probe(text) == Fault(kind)


SAID = "gpuspawner: 1 of 2 GPUs visible: Tesla T4\n"


def checked(name, **status):
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
def test_too_few_gpus_end_the_start_at_once(said, granted, visible):
    found = checked(CONTAINER, state=ended(FEWER, message=said))

    [trouble] = found
    assert trouble.kind is Kind.GPUS_MISSING
    assert trouble.about == About(container=CONTAINER, granted=granted, visible=visible)
    assert trouble.text == (said or "Error")
    failure = hopeless(found, {})
    assert failure
    assert failure.cause is trouble


def test_it_stays_so_when_the_kubelet_starts_the_check_again():
    again = {"restartCount": 1, "lastState": ended(FEWER, message=SAID)}
    for state in ({"state": {"running": {}}}, waiting("CrashLoopBackOff")):
        first, *_ = checked(CONTAINER, **again, **state)
        assert (first.kind, first.is_final) == (Kind.GPUS_MISSING, True)


@pytest.mark.parametrize(
    ("name", "code"), [(CONTAINER, 1), ("notebook-init", FEWER), (CONTAINER, 137)]
)
def test_other_ends_are_crashes(name, code):
    [trouble] = checked(name, state=ended(code, message=SAID))

    assert (trouble.kind, trouble.is_final) == (Kind.CRASHED, False)


@pytest.mark.parametrize("reason", ["Error", "OOMKilled"])
def test_what_another_container_than_the_server_s_has_written_is_not_told(reason):
    """The server's owner would read it, and it may have secrets of the administrator's."""
    [trouble] = checked("course", state=ended(1, reason, "+ sync https://bot:s3cr3t@files"))

    assert trouble.text == f"course: {reason}, exit code 1"
    assert trouble.exit == Exit(1, reason=reason)


def test_a_check_that_found_all_is_no_trouble():
    assert checked(CONTAINER, state=ended(0, "Completed")) == ()


IMAGE = "quay.io/a:b"
RESOLVE = f'failed to resolve reference "{IMAGE}": {IMAGE}: not found'


@pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing"])
def test_a_container_that_waits_its_turn_is_in_no_trouble(reason):
    assert of_waiting(Waiting(reason), IMAGE) is None


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        ("ErrImagePull", RESOLVE, Kind.IMAGE_MISSING),
        ("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"', Kind.PULL_BACK_OFF),
        ("ErrImageNeverPull", "", Kind.IMAGE_NEVER_PULLED),
        ("InvalidImageName", "", Kind.IMAGE_NAME),
        ("ImageInspectError", "odd", Kind.PULL_FAILED),
        ("RegistryUnavailable", "", Kind.REGISTRY_UNREACHABLE),
        ("SignatureValidationFailed", "", Kind.IMAGE_SIGNATURE),
    ],
)
def test_a_pull_that_fails_names_the_image(reason, message, kind):
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
def test_a_container_that_does_not_start_tells_why(reason, message, kind):
    assert of_waiting(Waiting(reason, message), IMAGE).kind is kind


def test_a_device_that_is_broken_is_named():
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


def container(*, is_init=False, restarts=None):
    return SeenContainer(0, StartingContainer("a", restart_policy=restarts), None, is_init)


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
def test_a_container_that_ended_tells_why(ended, kind):
    assert of_end(ended, container(), "Always").kind is kind


def test_an_init_container_that_has_done_its_work_is_in_no_trouble():
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
def test_an_end_is_final_if_the_kubelet_does_not_start_it_again(policy, code, is_final):
    assert of_end(Terminated(code), container(), policy).is_final is is_final


def test_a_sidecar_is_always_started_again():
    sidecar = container(is_init=True, restarts="Always")

    assert of_end(Terminated(1), sidecar, "Never") == Fault(Kind.CRASHED)


@pytest.mark.parametrize(
    ("own", "code", "is_final"),
    [("OnFailure", 1, False), ("OnFailure", 0, True), ("Always", 0, False), ("Never", 1, True)],
)
def test_a_container_s_own_policy_goes_before_the_pod_s(own, code, is_final):
    of_pod = "Always" if is_final else "Never"
    assert of_end(Terminated(code), container(restarts=own), of_pod).is_final is is_final


def test_a_container_with_rules_of_its_own_may_be_started_again():
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    spec = StartingContainer("a", restart_policy="Never", restart_policy_rules=rules)

    assert of_end(Terminated(42), SeenContainer(0, spec, None, is_init=False), "Never") == Fault(
        Kind.CRASHED
    )
