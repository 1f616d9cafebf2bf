"""Finds the largest servers that fit on one node, for form fields that depend on each other.

A server runs on one node, so that node needs enough GPUs, memory and CPU at the same time.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.quantity import QuantityError
from gpuspawner.offers.manifest import PodRules
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.availability import Trials
from gpuspawner.scheduling import ClusterState
from gpuspawner.scheduling.could_hold import away, healthy
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.requests import CPU, MEMORY, Amounts, pod_requests

_Sizes: TypeAlias = tuple[int, int, int]
"""GPUs, bytes and millicores."""

_NOTHING: Amounts = {}
_HUGE = 2**50
"""More bytes of memory, and more millicores of CPU, than any other request of a pod."""


class Fit(msgspec.Struct, frozen=True):
    """The largest choice that fits on one node: GPUs, memory in bytes, CPU in millicores."""

    gpus: int
    memory: int
    cpu: int


class LargestFits(msgspec.Struct, frozen=True):
    """The largest choices.

    Attributes:
        free: With the resources that are free now.
        whole: With all resources except those of pods that never end, also on away nodes; None if
            a node can come that nobody has seen yet.
    """

    free: tuple[Fit, ...] = ()
    whole: tuple[Fit, ...] | None = ()


def largest_fits(
    state: ClusterState, trials: Trials, accelerator: Accelerator | None
) -> LargestFits | None:
    """Return the largest choices with an accelerator (None: without); None if unknown."""
    smallest = trials.smallest(accelerator)
    pod = trials.pod(smallest)
    huge = trials.pod(replace(smallest, memory=_HUGE, cpu=_HUGE))
    if pod is None or huge is None:
        return None
    try:
        filters = Filters(state, pod)
        screened, wanted = filters.screened(), pod_requests(huge, state.rules)
    except (QuantityError, SelectorError):
        return None
    if any(node.doubtful for node in screened.passing):
        return None
    scale = _Scale(accelerator, wanted, trials.rules)
    whole = {scale.sizes(node.allocatable, node.staying_requested) for node in screened.able}
    for node in (*screened.weak, *away(filters, screened)):
        whole.add(scale.sizes(healthy(node), node.staying_requested))
    free = {scale.sizes(node.free) for node in screened.able}
    return LargestFits(free=scale.largest(free), whole=scale.largest(whole))


def largest(found: Iterable[_Sizes]) -> list[_Sizes]:
    """Return the sizes that no other one surpasses, in descending order of the first size."""
    kept: list[_Sizes] = []
    for it in sorted(found, reverse=True):
        _, memory, cpu = it
        if not any(other[1] >= memory and other[2] >= cpu for other in kept):
            kept.append(it)
    return kept


class _Scale:
    def __init__(self, accelerator: Accelerator | None, wanted: Amounts, rules: PodRules) -> None:
        self._resource = accelerator.resource if accelerator else ""
        parts = {MEMORY: rules.memory_requested, CPU: rules.cpu_requested}
        # Use the configured decimals, because the nearest binary fraction may be larger.
        self._part = {name: Fraction(str(part)) for name, part in parts.items()}
        # The requests of sidecars and a runtime class. With a smaller choice, those of an init
        # container could hide them.
        self._beside = {
            name: wanted.get(name, 0) - math.ceil(_HUGE * part) for name, part in self._part.items()
        }

    def sizes(self, has: Amounts, kept: Amounts = _NOTHING) -> _Sizes:
        # A loop over the three names takes twice as long, and this is asked of every node, twice.
        gpus = self._resource
        return (
            has.get(gpus, 0) - kept.get(gpus, 0),
            has.get(MEMORY, 0) - kept.get(MEMORY, 0),
            has.get(CPU, 0) - kept.get(CPU, 0),
        )

    def largest(self, every: Iterable[_Sizes]) -> tuple[Fit, ...]:
        """Return the largest choices. Scaling keeps the order, so it comes last."""
        return tuple(
            Fit(max(0, gpus), self._most(memory, MEMORY), self._most(cpu, CPU))
            for gpus, memory, cpu in largest(every)
        )

    def _most(self, amount: int, name: str) -> int:
        return max(0, math.floor((amount - self._beside[name]) / self._part[name]))
