"""The report about a server's GPUs, with a C library in place of NVML."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcluster import nvml_stub
from localcluster.nvml_stub import Gpu

pytestmark = pytest.mark.each_python

GIB = 2**30
T4 = Gpu("Tesla T4", "GPU-1d0f5f1e", 15 * GIB, used=437 * 2**20, utilization=63)
A100 = Gpu(
    "NVIDIA A100-SXM4-40GB",
    "GPU-77aa",
    40 * GIB,
    slices=(
        Gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-0001", 5 * GIB, used=GIB),
        Gpu("NVIDIA A100-SXM4-40GB MIG 2g.10gb", "MIG-0002", 10 * GIB),
    ),
)

OLD_DRIVER = """
/* A driver from before MIG that tells little, with its second GPU off the bus. */
static int handle;
int nvmlInitWithFlags(unsigned int flags) { (void)flags; return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    *device = &handle;
    return index == 1 ? 15 /* GPU is lost */ : 0;
}
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length) {
    (void)device, (void)length;
    uuid[0] = 'G', uuid[1] = '\\0';
    return 0;
}
"""


def ask(*arguments: str, **environment: str) -> tuple[int, dict]:
    """Run the command with these variables, and return its exit status and output."""
    done = subprocess.run(
        [sys.executable, "-m", "gpuspawner.nvml", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="session")
def library() -> Path:
    return nvml_stub.build()


def with_gpus(library: Path, *gpus: Gpu) -> Mapping[str, str]:
    return nvml_stub.environment(library, gpus, os.environ)


def test_the_number_of_gpus_requested_is_status_0(library):
    status, answer = ask(GPUSPAWNER_GPUS="2", **with_gpus(library, T4, T4))

    assert status == 0
    assert answer["message"] == "GPUs asked for: 2, visible: 2."
    assert answer["devices"][0] == {
        "kind": "gpu",
        "name": "Tesla T4",
        "uuid": "GPU-1d0f5f1e",
        "memory_total_bytes": 15 * GIB,
        "memory_used_bytes": 437 * 2**20,
        "utilisation_percent": 63,
    }
    assert answer["problems"] == []
    assert answer["driver"]


@pytest.mark.parametrize(("asked", "gpus"), [("2", [T4]), ("1", [T4, T4]), ("0", [T4])])
def test_another_number_of_gpus_is_status_1(library, asked, gpus):
    status, answer = ask(GPUSPAWNER_GPUS=asked, **with_gpus(library, *gpus))

    assert (status, answer["status"]) == (1, 1)
    assert (answer["expected"], answer["visible"]) == (int(asked), len(gpus))


def test_the_command_line_beats_the_variable(library):
    status, answer = ask("--expect", "1", GPUSPAWNER_GPUS="2", **with_gpus(library, T4))

    assert (status, answer["expected"]) == (0, 1)


def test_a_gpu_with_mig_counts_as_its_slices(library):
    status, answer = ask("--expect", "2", **with_gpus(library, A100))

    assert status == 0
    assert [device["uuid"] for device in answer["devices"]] == ["MIG-0001", "MIG-0002"]
    assert answer["devices"][0] == {
        "kind": "mig",
        "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "uuid": "MIG-0001",
        "memory_total_bytes": 5 * GIB,
        "memory_used_bytes": GIB,
        "utilisation_percent": None,
    }
    assert answer["problems"] == []


def test_without_a_number_requested_the_status_is_0(library, monkeypatch):
    monkeypatch.delenv("GPUSPAWNER_GPUS", raising=False)

    status, answer = ask(**with_gpus(library, T4))

    assert (status, answer["expected"], answer["visible"]) == (0, None, 1)


@pytest.mark.parametrize("text", ["-1", "two", "1.5", "", " 1", "٣", "9" * 5000])
def test_a_request_that_is_not_a_number_is_status_2(library, text):
    status, answer = ask(GPUSPAWNER_GPUS=text, **with_gpus(library, T4))

    assert status == 2
    assert answer["message"].startswith("Cannot tell which GPUs are here: GPUSPAWNER_GPUS is ")
    assert len(answer["message"]) < 200


@pytest.mark.parametrize(("asked", "status"), [("0", 0), ("1", 2)])
def test_only_a_server_with_gpus_needs_the_library(tmp_path, asked, status):
    # An unusable library, which the loader finds before the machine's own.
    (tmp_path / nvml_stub.LIBRARY).touch()

    got, answer = ask(GPUSPAWNER_GPUS=asked, LD_LIBRARY_PATH=str(tmp_path))

    assert got == status
    assert ("libnvidia-ml.so.1" in answer["message"]) == (status == 2)


@pytest.mark.parametrize(("asked", "status"), [("0", 0), ("1", 2)])
def test_only_a_server_with_gpus_needs_the_driver(library, asked, status):
    got, answer = ask(GPUSPAWNER_GPUS=asked, LOCALCLUSTER_NVML_ERROR="9", **with_gpus(library, T4))

    assert got == status
    assert ("no NVIDIA driver is loaded" in answer["message"]) == (status == 2)


def test_any_other_error_of_nvml_is_quoted(library):
    status, answer = ask("--expect", "0", LOCALCLUSTER_NVML_ERROR="4", **with_gpus(library, T4))

    assert status == 2
    assert answer["message"].endswith("NVML does not start: Insufficient Permissions.")


def test_memory_that_the_driver_keeps_for_itself_is_not_used(library):
    unused = Gpu("NVIDIA H200", "GPU-1", 140 * GIB)

    _, answer = ask("--expect", "1", **with_gpus(library, unused))

    assert answer["devices"][0]["memory_used_bytes"] == 0


def test_values_missing_from_an_old_or_broken_driver_are_null_and_noted(tmp_path, monkeypatch):
    (tmp_path / "old.c").write_text(OLD_DRIVER)
    monkeypatch.setattr(nvml_stub, "SOURCE", tmp_path / "old.c")
    nvml_stub._compile(tmp_path)

    status, answer = ask("--expect", "2", LD_LIBRARY_PATH=str(tmp_path))

    assert status == 1
    assert answer["devices"] == [
        {
            "kind": "gpu",
            "name": None,
            "uuid": "G",
            "memory_total_bytes": None,
            "memory_used_bytes": None,
            "utilisation_percent": None,
        }
    ]
    assert answer["problems"] == [
        "GPU 0, memory: Function Not Found",
        "GPU 0, utilisation: Function Not Found",
        "GPU 0, name: Function Not Found",
        "GPU 1: GPU is lost",
        "driver: Function Not Found",
    ]


def test_without_the_package_the_message_says_how_to_install_it(tmp_path):
    (tmp_path / "pynvml.py").write_text("raise ImportError('not here')")

    status, answer = ask("--expect", "0", PYTHONPATH=str(tmp_path))

    assert status == 2
    assert "pip install nvidia-ml-py" in answer["message"]
