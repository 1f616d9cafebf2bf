"""Generates random clusters that a real API server accepts, skewed toward difficult cases.

A family and a seed give the same case on any machine.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.scheduling.generators.case import Case, Draw
from tests.scheduling.generators.claims import volumes
from tests.scheduling.generators.csi import csi_drivers, csi_limits, storage_capacity
from tests.scheduling.generators.families import (
    affinity,
    even_spread,
    mixed,
    namespaces,
    ports,
    resources,
    taints,
    topology,
)
from tests.scheduling.generators.priorities import nominated, preemption
from tests.scheduling.generators.resizing import resize

Family = Callable[[Draw, Case], None]

FAMILIES: dict[str, Family] = {
    each.__name__: each
    for each in (
        resources,
        taints,
        affinity,
        ports,
        topology,
        namespaces,
        even_spread,
        mixed,
        preemption,
        nominated,
        volumes,
        csi_limits,
        csi_drivers,
        storage_capacity,
        resize,
    )
}


def generate(family: str, seed: int) -> Case:
    """Return the case of a family and a seed; it is the same on every machine."""
    case = Case(f"{family.replace('_', '-')}-{seed}")
    FAMILIES[family](Draw(f"{family}:{seed}"), case)
    return case
