"""Admission that follows a script, and preflights that ask it."""

from __future__ import annotations

from typing import Any

from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Of, OverQuota, Rejection, Use
from tests.unit.makers.worlds import GPU, NAMESPACE, StillView, pod

OVER = Rejection(Of.POD, OverQuota((Use(GPU, 4, 3, 4),)), "exceeded quota: gpu")
TAINT = {"key": GPU, "effect": "NoSchedule"}
TOLERATE_ALL = [{"operator": "Exists"}]
ON_A_CLOUD = {"providerID": "gce://project/zone/n"}  # where pools may grow
OFFERS = Offers.parse(
    accelerators={"a100": {"node_selector": {"gpu": "a100"}, "counts": [1, 2, 4, 8]}}
)


class Scripted:
    """Admission that adds *more* to every spec, and rejects pods by the GPUs they ask for."""

    def __init__(self, **more: object) -> None:
        self.more = more
        self.refused: set[int] = set()
        self.no = OVER
        self.asked: list[int] = []

    async def admit(self, namespace: str, pod: Any) -> Any:
        assert namespace == NAMESPACE
        [container] = pod["spec"]["containers"]
        gpus = int(container["resources"]["limits"].get(GPU, "0"))
        self.asked.append(gpus)
        return self.no if gpus in self.refused else {**pod, "spec": {**pod["spec"], **self.more}}


class NoAnswer:
    """Admission whose dry runs fail."""

    async def admit(self, *_: object) -> None:
        return None


class NoTurn:
    """Admission that has no turn left."""

    async def admit(self, *_: object) -> None:
        raise TooManyDryRunsError


def preflight_on(*nodes: dict[str, object]) -> Preflight:
    return Preflight(StillView(*(("Node", plain) for plain in nodes)))


def tolerating() -> Scripted:
    return Scripted(tolerations=TOLERATE_ALL)


def choosing(gpus: int) -> Proposal:
    """Return a proposal; 1, 2, 4 or 8 GPUs of one model are on offer."""
    return Proposal(NAMESPACE, "a", pod("a", gpus), Grant(OFFERS.accelerators["a100"], gpus))
