"""What one machine can hold, for choices that depend on each other.

A server runs on one machine, so that GPUs, memory and CPU have to be there together. Of all
machines only those matter here that no other one surpasses in everything.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from gpuspawner.availability import Trials
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.manifest import PodRules
from gpuspawner.offers import Accelerator
from gpuspawner.scheduling import ClusterState
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.outcome import away, healthy
from gpuspawner.scheduling.requests import CPU, MEMORY, Amounts, pod_requests

Sizes: TypeAlias = tuple[int, int, int]
"""GPUs, bytes and millicores."""

_NOTHING: Amounts = {}
_HUGE = 2**50
"""More memory in bytes, and more CPU in millicores, than anything else that a pod asks for."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The most that can be chosen on one machine.

    Attributes:
        gpus: Of the accelerator's resource.
        memory: Bytes.
        cpu: Millicores.
    """

    gpus: int
    memory: int
    cpu: int


@dataclass(frozen=True, slots=True)
class Machines:
    """The largest machines, as they are now and as they are at most.

    Attributes:
        free: With what is free on them now.
        whole: With all that they have beside pods that never end; machines that are away count.
    """

    free: tuple[Machine, ...] = ()
    whole: tuple[Machine, ...] = ()


def machines(
    state: ClusterState, trials: Trials, accelerator: Accelerator | None
) -> Machines | None:
    """Find the largest machines for servers with an accelerator; None where it cannot be told.

    Args:
        state: What is known of the cluster.
        trials: Makes the pods that are tried.
        accelerator: Which one; None for servers without.
    """
    smallest = trials.smallest(accelerator)
    pod = trials.pod(smallest)
    huge = trials.pod(replace(smallest, memory=_HUGE, cpu=_HUGE))
    if pod is None or huge is None:
        return None
    try:
        filters = Filters(state, pod)
        screen, wanted = filters.screen(), pod_requests(huge, state.rules)
    except (QuantityError, SelectorError):
        return None
    if any(node.doubtful for node in screen.passing):
        return None
    scale = _Scale(accelerator, wanted, trials.rules)
    whole = {scale.sizes(node.allocatable, node.staying_requested) for node in screen.able}
    for node in (*screen.weak, *away(filters, screen)):
        whole.add(scale.sizes(healthy(node), node.staying_requested))
    free = {scale.sizes(node.free) for node in screen.able}
    return Machines(free=scale.largest(free), whole=scale.largest(whole))


def largest(found: Iterable[Sizes]) -> list[Sizes]:
    """Those that no other one surpasses, in falling order of the first size."""
    kept: list[Sizes] = []
    for it in sorted(found, reverse=True):
        _, memory, cpu = it
        if not any(other[1] >= memory and other[2] >= cpu for other in kept):
            kept.append(it)
    return kept


class _Scale:
    """From what a machine has to what can be chosen on it."""

    def __init__(self, accelerator: Accelerator | None, wanted: Amounts, rules: PodRules) -> None:
        self._resource = accelerator.resource if accelerator else ""
        parts = {MEMORY: rules.memory_requested, CPU: rules.cpu_requested}
        # The decimals that were configured; the nearest binary fraction may be above them.
        self._part = {name: Fraction(str(part)) for name, part in parts.items()}
        # What a pod requests beside the choices: sidecars, and the overhead of a runtime class.
        # With a smaller choice an init container could hide that.
        self._beside = {
            name: wanted.get(name, 0) - math.ceil(_HUGE * part) for name, part in self._part.items()
        }

    def sizes(self, has: Amounts, kept: Amounts = _NOTHING) -> Sizes:
        """What there is of what can be chosen, less what is kept from it."""
        gpus = self._resource
        return (
            has.get(gpus, 0) - kept.get(gpus, 0),
            has.get(MEMORY, 0) - kept.get(MEMORY, 0),
            has.get(CPU, 0) - kept.get(CPU, 0),
        )

    def largest(self, every: Iterable[Sizes]) -> tuple[Machine, ...]:
        """The largest machines; only those are scaled, since that leaves their order as it is."""
        return tuple(
            Machine(max(0, gpus), self._most(memory, MEMORY), self._most(cpu, CPU))
            for gpus, memory, cpu in largest(every)
        )

    def _most(self, amount: int, name: str) -> int:
        return max(0, math.floor((amount - self._beside[name]) / self._part[name]))
