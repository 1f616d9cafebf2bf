"""The GPUs that a process sees through the replacement of NVIDIA's management library."""

from __future__ import annotations

import os
import subprocess
import sys

from localcluster import nvml_stub
from localcluster.nvml_stub import Gpu

LOOK = """
import pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError as error:
    raise SystemExit(f"error {error.value}")
for index in range(pynvml.nvmlDeviceGetCount()):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    print(pynvml.nvmlDeviceGetName(gpu), pynvml.nvmlDeviceGetUUID(gpu), memory.total, memory.used)
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
        except pynvml.NVMLError_NotFound:
            break
        print(" ", pynvml.nvmlDeviceGetName(mig), pynvml.nvmlDeviceGetMemoryInfo(mig).total)
pynvml.nvmlShutdown()
"""


def look(variables: dict[str, str]) -> list[str]:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def test_a_process_sees_the_gpus_that_its_environment_describes() -> None:
    gpus = [Gpu("Tesla T4", "GPU-1", 16 * 2**30, used=2**30), Gpu("Tesla T4", "GPU-2", 2**34)]

    seen = look(nvml_stub.environment(nvml_stub.build(), gpus))

    assert seen == ["Tesla T4 GPU-1 17179869184 1073741824", "Tesla T4 GPU-2 17179869184 0"]


def test_a_process_sees_the_slices_of_a_gpu() -> None:
    mig_slice = Gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-1", 5 * 2**30)
    gpu = Gpu("NVIDIA A100-SXM4-40GB", "GPU-1", 40 * 2**30, slices=(mig_slice,))

    seen = look(nvml_stub.environment(nvml_stub.build(), [gpu]))

    assert seen == [
        "NVIDIA A100-SXM4-40GB GPU-1 42949672960 0",
        "  NVIDIA A100-SXM4-40GB MIG 1g.5gb 5368709120",
    ]


def test_a_process_without_gpus_sees_none() -> None:
    assert look(nvml_stub.environment(nvml_stub.build(), [])) == []


def test_a_process_without_a_description_finds_no_driver() -> None:
    variables = nvml_stub.environment(nvml_stub.build(), [])
    del variables[nvml_stub.GPUS]

    assert look(variables) == ["error 9"]


def test_initialization_can_be_made_to_fail() -> None:
    variables = nvml_stub.environment(nvml_stub.build(), [])

    assert look({**variables, nvml_stub.ERROR: "18"}) == ["error 18"]
