"""What one machine can hold, for choices that depend on each other.

A server runs on one machine, so that GPUs, memory and CPU have to be there together. Of all
machines only those matter here that no other one surpasses in everything.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuspawner.availability import Trials
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.manifest import PodRules
from gpuspawner.offers import Accelerator
from gpuspawner.scheduling import ClusterState
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.outlook import away, healthy
from gpuspawner.scheduling.requests import CPU, MEMORY, Amounts, asked

_HUGE = 2**50
"""More memory in bytes, and more CPU in millicores, than anything else that a pod asks for."""


@dataclass(frozen=True, slots=True, order=True)
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
        screen, wanted = filters.screen(), asked(huge, state.rules)
    except (QuantityError, SelectorError):
        return None
    if any(node.doubtful for node in screen.passing):
        return None
    scale = _Scale(accelerator, wanted, trials.rules)
    there = [(node, node.allocatable) for node in screen.able]
    there += [(node, healthy(node)) for node in (*screen.weak, *away(filters, screen))]
    return Machines(
        free=largest(scale.machine(node.free) for node in screen.able),
        whole=largest(scale.machine(_lasting(node, amounts)) for node, amounts in there),
    )


def largest(found: Iterable[Machine]) -> tuple[Machine, ...]:
    """Those that no other one surpasses, in falling order of GPUs."""
    kept: list[Machine] = []
    for it in sorted(set(found), reverse=True):
        if not any(other.memory >= it.memory and other.cpu >= it.cpu for other in kept):
            kept.append(it)
    return tuple(kept)


def _lasting(node: NodeInfo, allocatable: Amounts) -> Amounts:
    staying = node.staying_requested
    return {name: amount - staying.get(name, 0) for name, amount in allocatable.items()}


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

    def machine(self, amounts: Amounts) -> Machine:
        return Machine(
            gpus=max(0, amounts.get(self._resource, 0)),
            memory=self._most(amounts, MEMORY),
            cpu=self._most(amounts, CPU),
        )

    def _most(self, amounts: Amounts, name: str) -> int:
        return max(0, math.floor((amounts.get(name, 0) - self._beside[name]) / self._part[name]))
