"""Check the GPUs that a server really got: `python -m gpuspawner.nvml [--expect N]`.

Run it inside a user's server. NVML (the NVIDIA Management Library, libnvidia-ml.so.1, read through
the package nvidia-ml-py) lists the GPUs that the container sees. For an accelerator, the hub sets
the environment variable `GPUSPAWNER_GPUS` to the number of GPUs requested; for one of KubeSpawner's
profiles, it doesn't. The command prints one JSON object and returns an exit status:

- 0: the container sees as many GPUs as requested, or no number is known and NVML answers;
- 1: the container sees another number of GPUs;
- 2: unknown, because NVML isn't usable here or the number requested isn't a number.

If 0 GPUs were requested, a container without the driver is fine: status 0.

This module needs no hub and no other part of gpuspawner, so a user's image only needs the
gpuspawner wheel and nvidia-ml-py.
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
    """One GPU, or one MIG slice of a GPU; a field is None if NVML doesn't report it.

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
    """The GPUs requested, compared with the GPUs that the container sees.

    Attributes:
        expected: the number of GPUs requested; None if unknown.
        devices: the GPUs and MIG slices that the container can use.
        driver: the driver's version.
        problems: NVML's errors about single devices.
        failure: why NVML couldn't be asked at all.
        no_driver: whether *failure* is a missing driver, which is normal without GPUs.
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
        """One plain sentence for the user."""
        if self.status == CANNOT_TELL:
            return f"Cannot tell which GPUs are here: {self.failure}"
        asked = "an unknown number" if self.expected is None else self.expected
        return f"GPUs asked for: {asked}, visible: {len(self.devices)}."

    def as_json(self) -> str:
        """The report as the JSON text that `main` prints, in ASCII."""
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
        description="List the GPUs that this container sees, and check their number.",
        epilog="Exit status: 0 as requested, 1 another number, 2 unknown.",
    )
    parser.add_argument(
        "--expect",
        metavar="N",
        help=f"the number of GPUs expected; the default is the variable {EXPECTED_VARIABLE}",
    )
    options = parser.parse_args(arguments)
    report = check(options.expect, os.environ)
    print(report.as_json())
    return report.status


def check(expect: str | None, environment: Mapping[str, str]) -> Report:
    """Compare the GPUs that NVML sees with the number requested.

    Args:
        expect: the number requested, from the command line; None to read it from `environment`.
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
    """Ask NVML for every GPU and MIG slice of this container; its errors go into the report."""
    try:
        import pynvml
    except ImportError:
        failure = "the package nvidia-ml-py is not installed; run: pip install nvidia-ml-py."
        return Report(expected, failure=failure)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        failure = "there is no libnvidia-ml.so.1, so this container has no NVIDIA driver."
        return Report(expected, failure=failure, no_driver=True)
    except pynvml.NVMLError_DriverNotLoaded:
        failure = "NVML is installed, but no NVIDIA driver is loaded on this machine."
        return Report(expected, failure=failure, no_driver=True)
    except pynvml.NVMLError as error:
        return Report(expected, failure=f"NVML does not start: {error}.")
    inventory = _Inventory(pynvml)
    try:
        devices = tuple(inventory.devices())
        driver: str | None = inventory.ask("driver", pynvml.nvmlSystemGetDriverVersion)
    except pynvml.NVMLError as error:
        return Report(expected, failure=f"NVML cannot count the GPUs: {error}.")
    finally:
        pynvml.nvmlShutdown()
    return Report(expected, devices, driver, tuple(inventory.problems))


class _Inventory:
    """Goes through NVML's devices and notes its errors."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self.problems: list[str] = []

    def devices(self) -> Iterator[Device]:
        """Yield each GPU, or its slices instead if MIG is on.

        Raises:
            pynvml.NVMLError: NVML can't count the GPUs.
        """
        nvml = self._nvml
        for index in range(nvml.nvmlDeviceGetCount()):
            about = f"GPU {index}"
            gpu = self.ask(about, nvml.nvmlDeviceGetHandleByIndex, index)
            if gpu is None:
                continue
            if self.ask(f"{about}, MIG mode", self._has_mig, gpu):
                yield from self._slices(gpu, about)
            else:
                yield self._device("gpu", gpu, about)

    def ask(self, about: str, question: Callable[..., Answer], *arguments: object) -> Answer | None:
        """Return NVML's answer, or note its error and return None."""
        try:
            return question(*arguments)
        except self._nvml.NVMLError as error:
            self.problems.append(f"{about}: {error}")
            return None

    def _has_mig(self, gpu: Handle) -> bool:
        """Whether MIG is on; GPUs and drivers from before MIG don't support the question."""
        try:
            current, _pending = self._nvml.nvmlDeviceGetMigMode(gpu)
        except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
            return False
        return bool(current == self._nvml.NVML_DEVICE_MIG_ENABLE)

    def _slices(self, gpu: Handle, about: str) -> Iterator[Device]:
        places = self.ask(f"{about}, MIG slices", self._nvml.nvmlDeviceGetMaxMigDeviceCount, gpu)
        for place in range(places or 0):
            about_slice = f"{about}, MIG slice {place}"
            part = self.ask(about_slice, self._slice, gpu, place)
            if part is not None:
                yield self._device("mig", part, about_slice)

    def _slice(self, gpu: Handle, place: int) -> Handle | None:
        """The slice at an index; None if the index is empty or belongs to another container."""
        try:
            return self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)
        except self._nvml.NVMLError_NotFound:
            return None

    def _device(self, kind: Literal["gpu", "mig"], device: Handle, about: str) -> Device:
        nvml = self._nvml
        memory = self.ask(f"{about}, memory", self._memory, device)
        rates = None
        if kind == "gpu":  # NVML reports none for a slice; asking would look like a problem
            rates = self.ask(f"{about}, utilisation", nvml.nvmlDeviceGetUtilizationRates, device)
        return Device(
            kind=kind,
            name=self.ask(f"{about}, name", nvml.nvmlDeviceGetName, device),
            uuid=self.ask(f"{about}, uuid", nvml.nvmlDeviceGetUUID, device),
            memory_total_bytes=memory and int(memory.total),
            memory_used_bytes=memory and int(memory.used),
            utilisation_percent=rates and int(rates.gpu),
        )

    def _memory(self, device: Handle) -> Any:
        """The memory of a device, without what the driver keeps for itself, if NVML tells that.

        The first version of the question counts that as used: 615 MiB of an H200 that nothing uses.
        """
        nvml = self._nvml
        try:
            return nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2)
        except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
            return nvml.nvmlDeviceGetMemoryInfo(device)  # a driver from before 2022


if __name__ == "__main__":
    sys.exit(main())
