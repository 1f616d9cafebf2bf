"""What servers will take whose pods aren't shown yet: from the grant on, however the start ends.

It is the counterpart of the preflight's reservations: those promise room on nodes, and only while
the view of the cluster can be trusted; a pledge counts toward limits in each case.
"""

from __future__ import annotations

import math
import time
from enum import Enum, auto

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.meta import Key
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.ledger import Ledger

LEFT_SECONDS = 120.0
"""How long a pledge lasts after the end of a start whose pod is never shown.

It is longer than a watch may be silent before nothing is counted any more (see `Backoff` and
`STALE_AFTER`): until then, a broken connection looks as if the pod weren't there.
"""


class _Phase(Enum):
    """How far the start has come."""

    PLEDGED = auto()
    """No pod was sent, so none exists."""
    SENT = auto()
    """A pod was sent, and may exist."""
    LEFT = auto()
    """The start is over, but what became of its pod isn't known."""


class _Pledge(msgspec.Struct):
    """A pledge.

    Attributes:
        older: The uid of the pod of its name that was there when the new pod was sent.
        earlier: What an earlier start has left, until this one sends its pod.
    """

    charge: Charge
    phase: _Phase
    since: float
    older: str = ""
    earlier: _Pledge | None = None


class Pledges:
    """The pledges of one hub."""

    def __init__(self, ledger: Ledger, left: float = LEFT_SECONDS) -> None:
        self._ledger = ledger
        self._left = left
        self._pledges: dict[Key, _Pledge] = {}

    def leave(self, key: Key, charge: Charge) -> None:
        """Pledge what an earlier hub may have left: nothing, and only until the pods are known."""
        self._pledges.setdefault(key, _Pledge(charge, _Phase.LEFT, -math.inf))
        self._ledger.claims.sent.setdefault(key, (charge, ""))

    def take(self, key: Key, charge: Charge) -> None:
        """Pledge what a server will take, instead of an earlier pledge of its name."""
        pledge = self._pledges.get(key)
        if pledge is None or pledge.phase is _Phase.LEFT:
            pledge = _Pledge(charge, _Phase.PLEDGED, time.monotonic(), earlier=pledge)
        self._keep(key, replace(pledge, charge=charge))

    def look(self) -> None:
        """End the pledges of ended starts whose pods are shown, or were not for long.

        Whoever calls this knows the pods of this moment.
        """
        for key, pledge in list(self._pledges.items()):
            is_old = time.monotonic() - pledge.since > self._left
            if pledge.phase is _Phase.LEFT and (is_old or self._is_shown(key, pledge)):
                self.vacate(key)

    def rename(self, old: Key, new: Key) -> None:
        """Note that the pod will be sent by another name; what earlier starts have left stays."""
        if pledge := self._pledges.get(old):
            self.release(old)
            self.take(new, pledge.charge)

    def send(self, key: Key) -> None:
        """Note that the pod is about to be sent: from now on it may exist."""
        if pledge := self._pledges.get(key):
            older = self._ledger.pods.get(key)
            pledge.older = older.metadata.uid if older else ""
            pledge.phase, pledge.earlier = _Phase.SENT, None
            self._ledger.claims.sent[key] = pledge.charge, pledge.older

    def send_again(self, key: Key) -> None:
        """Note that the pod will be sent again; a pod of its name may exist until then."""

    def release(self, key: Key) -> None:
        """Note that the start is over; end the pledge if no pod was sent. Never raises."""
        pledge = self._pledges.get(key)
        if pledge is None:
            return
        if pledge.phase is _Phase.PLEDGED and pledge.earlier:
            self._keep(key, pledge.earlier)
        elif pledge.phase is _Phase.PLEDGED:
            self.vacate(key)
        elif pledge.phase is _Phase.SENT:
            pledge.phase, pledge.since = _Phase.LEFT, time.monotonic()
            if self._is_shown(key, pledge):
                self.vacate(key)

    def see_out(self, key: Key) -> None:
        """Note that the pod was stopped; end its pledge if its start is over."""
        pledge = self._pledges.get(key)
        if pledge and pledge.phase is _Phase.LEFT:
            self.vacate(key)

    def vacate(self, key: Key) -> None:
        """End the pledge at once: no pod exists, and none is being created. Never raises."""
        if self._pledges.pop(key, None) is not None:
            self._ledger.usage.release(key)
            self._ledger.claims.sent.pop(key, None)

    def _keep(self, key: Key, pledge: _Pledge) -> None:
        self._pledges[key] = pledge
        self._ledger.usage.reserve(key, pledge.charge)

    def _is_shown(self, key: Key, pledge: _Pledge) -> bool:
        pod = self._ledger.pods.get(key)
        return pod is not None and pod.metadata.uid != pledge.older
