"""The GPUs that a server really got: `python -m gpuspawner.nvml [--expect N]`.

Run inside a user's server. NVML (the NVIDIA Management Library, libnvidia-ml.so.1, read through the
package nvidia-ml-py) says which GPUs the container sees; the spawner says in the environment
variable `GPUSPAWNER_GPUS` how many were asked for. The answer is one JSON object on standard output
and an exit status:

- 0: as many GPUs as asked for, or nothing was asked and NVML answers;
- 1: another number of them;
- 2: cannot be told, because NVML is not usable here or the number asked for is not a number.

Where none were asked for, a container without the driver is as it should be: status 0.

This module needs no other part of gpuspawner and no hub, so the wheel alone, with nvidia-ml-py
beside it, is enough in a user's image.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Literal, TypeVar

EXPECTED_VARIABLE = "GPUSPAWNER_GPUS"

AS_ASKED = 0
DIFFERENT = 1
CANNOT_TELL = 2

Answer = TypeVar("Answer")
Handle = Any  # NVML's opaque pointer, a ctypes object


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG slice of a GPU; None is what NVML does not tell.

    Memory is in bytes, utilisation in percent of NVML's last sample period.
    """

    kind: Literal["gpu", "mig"]
    name: str | None
    uuid: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    utilisation_percent: int | None


@dataclass(frozen=True)
class Report:
    """What was asked for beside what is there.

    Attributes:
        expected: the number of GPUs asked for; None where nothing says it.
        devices: the GPUs and MIG slices that the container can use.
        driver: the driver's version.
        problems: what NVML refused to tell about single devices.
        failure: why nothing could be asked at all.
        no_driver: that failure is the lack of a driver, as a server without GPUs has it.
    """

    expected: int | None
    devices: tuple[Device, ...] = ()
    driver: str | None = None
    problems: tuple[str, ...] = ()
    failure: str | None = None
    no_driver: bool = False

    @property
    def status(self) -> int:
        """The exit status."""
        if self.failure and not (self.no_driver and self.expected == 0):
            return CANNOT_TELL
        return AS_ASKED if self.expected in (None, len(self.devices)) else DIFFERENT

    @property
    def message(self) -> str:
        """One plain sentence for the person who reads the output."""
        if self.status == CANNOT_TELL:
            return f"Cannot tell which GPUs are here: {self.failure}"
        asked = "an unknown number" if self.expected is None else self.expected
        return f"GPUs asked for: {asked}, visible: {len(self.devices)}."

    def as_json(self) -> str:
        """The object that is printed, in ASCII."""
        answer = {
            "status": self.status,
            "message": self.message,
            "expected": self.expected,
            "visible": len(self.devices),
            "driver": self.driver,
            "devices": [asdict(device) for device in self.devices],
            "problems": self.problems,
        }
        return json.dumps(answer, indent=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gpuspawner.nvml",
        description="Which GPUs does this container see, and are they as many as were asked for?",
        epilog="Exit status: 0 as asked, 1 another number, 2 cannot be told.",
    )
    parser.add_argument(
        "--expect",
        metavar="N",
        help=f"how many there should be; without it, the variable {EXPECTED_VARIABLE} says so",
    )
    options = parser.parse_args(arguments)
    report = check(options.expect, os.environ)
    print(report.as_json())
    return report.status


def check(expect: str | None, environment: Mapping[str, str]) -> Report:
    """Compare what NVML sees with what was asked for.

    Args:
        expect: the number asked for, as the command line gives it; None to take it from
            `environment`.
        environment: the process's environment variables.
    """
    source, text = "--expect", expect
    if text is None:
        source, text = EXPECTED_VARIABLE, environment.get(EXPECTED_VARIABLE)
    if text is None:
        return visible(None)
    if not re.fullmatch("[0-9]{1,4}", text):
        failure = f"{source} is {text[:40]!r}, but has to be a number of GPUs such as 0 or 2."
        return Report(expected=None, failure=failure)
    return visible(int(text))


def visible(expected: int | None) -> Report:
    """Ask NVML for every GPU and MIG slice of this container; its faults are told, never raised."""
    try:
        import pynvml
    except ImportError:
        failure = "the package nvidia-ml-py is not installed; gpuspawner[nvml] brings it."
        return Report(expected, failure=failure)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        failure = "there is no libnvidia-ml.so.1, so this container was given no NVIDIA driver."
        return Report(expected, failure=failure, no_driver=True)
    except pynvml.NVMLError_DriverNotLoaded:
        failure = "NVML is here, but no NVIDIA driver is loaded on this machine."
        return Report(expected, failure=failure, no_driver=True)
    except pynvml.NVMLError as error:
        return Report(expected, failure=f"NVML does not start: {error}.")
    inventory = _Inventory(pynvml)
    try:
        devices = tuple(inventory.devices())
        driver: str | None = inventory.told("driver", pynvml.nvmlSystemGetDriverVersion)
    except pynvml.NVMLError as error:
        return Report(expected, failure=f"NVML cannot count the GPUs: {error}.")
    finally:
        pynvml.nvmlShutdown()
    return Report(expected, devices, driver, tuple(inventory.problems))


class _Inventory:
    """Goes through NVML's devices and notes what it refuses to tell."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self.problems: list[str] = []

    def devices(self) -> Iterator[Device]:
        """What can be used: each GPU, or the slices of a GPU that is cut into some.

        Raises:
            pynvml.NVMLError: the GPUs cannot even be counted.
        """
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetCount()):
            about = f"GPU {index}"
            gpu = self.told(about, nvml.nvmlDeviceGetHandleByIndex, index)
            if gpu is None:
                continue
            if self.told(f"{about}, MIG mode", self._is_cut, gpu):
                yield from self._slices(gpu, about)
            else:
                yield self._device("gpu", gpu, about)

    def told(
        self, about: str, question: Callable[..., Answer], *arguments: object
    ) -> Answer | None:
        """The answer, or None with a note of what NVML said instead."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError as error:
            self.problems.append(f"{about}: {error}")
            return None

    def _is_cut(self, gpu: Handle) -> bool:
        """Whether MIG is on; GPUs and drivers from before MIG do not know the question."""
        try:
            current, _pending = self._nvml.nvmlDeviceGetMigMode(gpu)
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
            return False
        return bool(current == self._nvml.NVML_DEVICE_MIG_ENABLE)

    def _slices(self, gpu: Handle, about: str) -> Iterator[Device]:
        places = self.told(f"{about}, MIG slices", self._nvml.nvmlDeviceGetMaxMigDeviceCount, gpu)
        for place in range(places or 0):
            about_slice = f"{about}, MIG slice {place}"
            part = self.told(about_slice, self._slice, gpu, place)
            if part is not None:
                yield self._device("mig", part, about_slice)

    def _slice(self, gpu: Handle, place: int) -> Handle | None:
        """The slice at a place; empty places, and those of other containers, hold none."""
        try:
            return self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)
        except self._nvml.NVMLError_NotFound:
            return None

    def _device(self, kind: Literal["gpu", "mig"], device: Handle, about: str) -> Device:
        nvml = self._nvml
        memory = self.told(f"{about}, memory", nvml.nvmlDeviceGetMemoryInfo, device)
        rates = None
        if kind == "gpu":  # of a slice NVML knows none, so that asking would look like a fault
            rates = self.told(f"{about}, utilisation", nvml.nvmlDeviceGetUtilizationRates, device)
        return Device(
            kind=kind,
            name=self.told(f"{about}, name", nvml.nvmlDeviceGetName, device),
            uuid=self.told(f"{about}, uuid", nvml.nvmlDeviceGetUUID, device),
            memory_total_bytes=memory and int(memory.total),
            memory_used_bytes=memory and int(memory.used),
            utilisation_percent=rates and int(rates.gpu),
        )


if __name__ == "__main__":
    sys.exit(main())
