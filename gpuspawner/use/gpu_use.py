"""Whether a server's GPUs are used, by what DCGM exporter says of each device. Pure.

A device is a GPU or a MIG slice. Exporters that know of time slices name each of a GPU's pods, and
older ones name only one of them, so the use of a share can't be told apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from itertools import chain

import msgspec

from gpuspawner.kube.meta import Key

USED = 0.01
"""The least use that counts, as a part of a GPU: an open notebook has 0, and a counter may have
0.0003 in it of nobody's."""
KNOWN = 0.95
"""Of so much of a window there must be samples if it is to be called unused."""


class DeviceUse(msgspec.Struct, frozen=True):
    """What is known of a device over a window.

    Attributes:
        name: The GPU's UUID, and the id of the slice.
        used: The highest use, from 0 to 1.
        known: The part of the window in which there are samples, from 0 to 1.
    """

    name: tuple[str, str]
    used: float
    known: float


class Window(msgspec.Struct, frozen=True, dict=True):
    """What is known of all devices.

    Attributes:
        seconds: Its length.
        until: When it ends, in seconds since 1970 by Prometheus' clock.
        devices: By the namespace and name of the pod that has them now.
    """

    seconds: float
    until: float
    devices: Mapping[Key, Sequence[DeviceUse]]

    @cached_property
    def shared(self) -> frozenset[tuple[str, str]]:
        """The names of devices that several pods have; found once for all servers."""
        each = ({it.name for it in its} for its in self.devices.values())
        pods = Counter(chain.from_iterable(each))
        return frozenset(name for name, number in pods.items() if number > 1)


class GPUUse(msgspec.Struct, frozen=True):
    """Whether the GPUs of one server are used.

    Attributes:
        seconds: The length of the window.
        used: The highest use of one of its GPUs in the window, from 0 to 1.
    """

    seconds: float
    used: float

    @property
    def is_used(self) -> bool:
        """Whether it was used at all."""
        return self.used >= USED


def use_of(window: Window, pod: Key, gpus: int, began: datetime | None) -> GPUUse | None:
    """Return the use of a server; None if it isn't known.

    Args:
        window: What is known.
        pod: The namespace and name of its pod.
        gpus: How many devices the pod has.
        began: When the pod began to run. A pod of the same name may have had the devices before.
    """
    devices = window.devices.get(pod, ())
    if not devices or len(devices) != gpus or began is None:
        return None
    used = max(it.used for it in devices)
    found = GPUUse(window.seconds, used)
    if found.is_used:
        return None if any(it.name in window.shared for it in devices) else found
    is_known = all(it.known >= KNOWN for it in devices)
    has_run = window.until - began.timestamp() >= window.seconds
    return found if is_known and has_run else None


class UseState(StrEnum):
    """Whether the GPUs of a server are used."""

    USED = "used"
    UNUSED = "unused"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, use: GPUUse | None) -> "UseState":
        """Return what a use says; None isn't known."""
        if use is None:
            return cls.UNKNOWN
        return cls.USED if use.is_used else cls.UNUSED
