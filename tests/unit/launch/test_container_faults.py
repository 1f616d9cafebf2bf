"""Why a container isn't created or started; an id with a number names the public thread."""

import pytest

from gpuspawner.launch.container_faults import of_probe, of_sandbox, of_start
from gpuspawner.launch.trouble import Fault, Kind
from tests.unit.makers.trouble_tables import meaning

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
        "no command": "no command specified",
    },
    (Kind.IMAGE_PLATFORM, True): {"arm64": "exec /usr/bin/tini: exec format error"},
    (Kind.GPU_DRIVER, False): {
        "getumbrel/llama-gpt#132": (
            f"{RUNC}{HOOK}stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli:"
            " initialization error: nvml error: driver not loaded: unknown"
        ),
        "Atinoda/text-generation-webui-docker#20": (
            f"{RUNC}{HOOK}stdout: , stderr: Auto-detected mode as 'legacy' nvidia-container-cli:"
            " initialization error: load library failed: libnvidia-ml.so.1: cannot open shared"
            " object file: no such file or directory: unknown"
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
def test_the_text_tells_why_a_container_is_not_started(text, kind, is_final) -> None:
    fault = of_start(text)

    assert (fault.kind, fault.is_final) == (kind, is_final)


def test_an_unknown_text_says_nothing() -> None:
    assert of_start("odd") is None


SANDBOXES = {
    (Kind.RUNTIME, "nvidia"): {
        "NVIDIA/gpu-operator#549": (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox"
            ' runtime: no runtime for "nvidia" is configured'
        ),
        "NVIDIA/gpu-operator#2168": (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = unable to get OCI"
            ' runtime for sandbox "1807": no runtime for "nvidia" is configured'
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
    (Kind.SANDBOX, ""): {
        "NVIDIA/gpu-operator#549, before": (
            "Failed to create pod sandbox: rpc error: code = Unavailable desc = connection error:"
            ' desc = "transport: Error while dialing dial unix /run/containerd/containerd.sock:'
            ' connect: connection refused"'
        )
    },
}


@pytest.mark.parametrize(("text", "kind", "name"), meaning(SANDBOXES))
def test_a_missing_sandbox_may_still_come(text, kind, name) -> None:
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
def test_a_probe_tells_what_it_is_for(text, kind) -> None:
    assert of_probe(text) == Fault(kind)
