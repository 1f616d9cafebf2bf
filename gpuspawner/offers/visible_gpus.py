"""Compares the GPUs that a container sees with those that it was granted.

The text of this file runs in users' images, before their servers, as an argument of ``python3 -c``.
So it needs nothing but Python 3.7: neither gpuspawner nor nvidia-ml-py. Kubernetes replaces a
dollar sign before a bracket in arguments, so there is none here.

A check that can't tell is no reason to keep a server from its user: then the status is 0.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CONTAINER = "gpuspawner-check-gpus"
"""The name of the init container that runs it."""

FEWER = 67
"""The exit status if fewer GPUs are visible than were granted."""

LIBRARIES = ["libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"]
"""Where NVML may be; the second place is that of GKE's device plugin."""

DEVICES = Path("/dev")
NAMES = ["nvidia[0-9]*", "dxg"]
"""A container with a GPU has one of these; the last is for Windows Subsystem for Linux."""

SECONDS = 45.0
"""How long NVML may take: without persistence mode, the driver starts each GPU first."""


class NvmlError(Exception):
    """NVML answered with an error."""


def check(granted: int, least: int, model: str) -> int:
    """Print what is visible, and return the exit status.

    Args:
        granted: How many GPUs the container was given.
        least: How many it has to see; shares of one GPU are one GPU.
        model: The model asked for, as the node's label has it; "" if no label was asked for.
    """
    found: list[tuple[int | None, str]] = []
    asking = threading.Thread(target=lambda: found.append(_answer(model)), daemon=True)
    asking.start()
    asking.join(SECONDS)
    visible, what = found[0] if found else (0, "NVML doesn't answer")
    if visible is None:
        print(f"gpuspawner: nobody can tell which GPUs are visible: {what}")
        return 0
    print(f"gpuspawner: {visible} of {granted} GPUs visible: {what}")
    return FEWER if visible < least else 0


def _answer(model: str) -> tuple[int | None, str]:
    try:
        return _seen(model)
    except Exception as error:  # noqa: BLE001, such as an NVML without one of its functions
        return None, repr(error)


def _seen(model: str) -> tuple[int | None, str]:
    """Return how many GPUs of a model are visible, and what is; the number is None if unknown."""
    nvml = _library()
    if nvml is None:
        if any(list(DEVICES.glob(name)) for name in NAMES):
            return None, "there is no libnvidia-ml.so.1, but there are GPUs"
        return 0, "there is neither a driver nor a GPU"
    try:
        _ask(nvml.nvmlInit_v2)
        names = list(_names(nvml))
    except NvmlError as error:
        return 0, str(error)
    wanted = [name for name in names if _plain(model).startswith(_plain(name)) or not model]
    return len(wanted), ", ".join(names) or "none"


def _library() -> Any:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def _ask(function: Callable[..., int], *arguments: object) -> None:
    code = function(*arguments)
    if code:
        raise NvmlError(f"NVML error {code}")


def _names(nvml: Any) -> Iterator[str]:
    """Yield the model of each GPU, or of each of its slices if MIG is on."""
    count = ctypes.c_uint()
    _ask(nvml.nvmlDeviceGetCount_v2, ctypes.byref(count))
    for index in range(count.value):
        gpu, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        try:
            _ask(nvml.nvmlDeviceGetHandleByIndex_v2, ctypes.c_uint(index), ctypes.byref(gpu))
            _ask(nvml.nvmlDeviceGetName, gpu, name, ctypes.c_uint(len(name)))
        except NvmlError:
            continue  # lost, so nothing can use it
        for _part in range(_slices(nvml, gpu)):
            yield name.value.decode(errors="replace")


def _slices(nvml: Any, gpu: ctypes.c_void_p) -> int:
    """Return how many slices of a GPU are visible; 1 if MIG is off, or older than the driver."""
    current, pending, most = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    try:
        _ask(nvml.nvmlDeviceGetMigMode, gpu, ctypes.byref(current), ctypes.byref(pending))
    except (AttributeError, NvmlError):
        return 1
    if not current.value:
        return 1
    _ask(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu, ctypes.byref(most))
    find, part = nvml.nvmlDeviceGetMigDeviceHandleByIndex, ctypes.c_void_p()
    places = range(most.value)
    return sum(not find(gpu, ctypes.c_uint(place), ctypes.byref(part)) for place in places)


def _plain(model: str) -> str:
    """Return a model without what its label lacks; labels add "MIG-1g.5gb" or "SHARED"."""
    return re.sub("[^a-z0-9]", "", model.lower())


if __name__ == "__main__":
    status = check(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    sys.stdout.flush()
    os._exit(status)  # a call of NVML may hang for ever
