"""Whether a server's GPUs are used, and when a server is given back if they aren't. Pure.

DCGM exporter says of each device how much it is used. A device is a GPU or a MIG slice. Exporters
that know of time slices name each of a GPU's pods, and older ones name only one of them, so the use
of a share can't be told apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.meta import Key
from gpuspawner.reservations.granted import WhenIdle
from gpuspawner.troubles.facts import Happened

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


# Idle servers: the owner of one is warned, may keep it a few times, and then it ends.
#
# Times are in seconds of a clock that never goes back. What isn't known starts no warning, and ends
# one: then the culler's own rule holds again.


class IdleStanding(msgspec.Struct, frozen=True):
    """How a server stands.

    Attributes:
        stops_at: Until when its owner may answer; None if there is no warning.
        kept_until: Until when its owner keeps it.
        kept: How often its owner has kept it since it was used.
    """

    stops_at: float | None = None
    kept_until: float = 0.0
    kept: int = 0

    def after(
        self, use: GPUUse | None, lately: GPUUse | None, rule: WhenIdle, now: float
    ) -> tuple["IdleStanding", tuple[Happened, ...]]:
        """Return how it stands now, and what has happened to it.

        *use* is that of the rule's time; None if it isn't known. *lately* is that of its shorter
        time, which counts while others wait. Before its owner kept it, the server was unused for at
        least that long, so any use in that time came later. The longer time may still show an older
        use.
        """
        if use is None:
            return replace(self, stops_at=None), ()
        if use.is_used:
            still = replace(self, stops_at=None)  # the time that it was kept for stays promised
            if self.kept and lately is not None and lately.is_used:
                return replace(still, kept=0), (Happened.USED,)
            return still, ()
        if now < self.kept_until or self.stops_at is not None:
            return self, ()
        return replace(self, stops_at=now + rule.warning), (Happened.IDLE, Happened.WARNED)

    def may_keep(self, rule: WhenIdle) -> bool:
        """Whether the owner of a server that will be stopped may keep it."""
        return self.stops_at is not None and self.kept < rule.keeps

    def may_stop(self, looked_at: float) -> bool:
        """Whether a server may be stopped; *looked_at* is when the last look began.

        A look reads what was before it. So only one that began when the owner's time was over says
        that nothing was used until then.
        """
        return self.stops_at is not None and looked_at >= self.stops_at

    def keep(self, rule: WhenIdle, now: float) -> "IdleStanding":
        """Keep a server for a while; its owner is warned again after that, if it isn't used."""
        return replace(self, stops_at=None, kept_until=now + rule.kept, kept=self.kept + 1)
