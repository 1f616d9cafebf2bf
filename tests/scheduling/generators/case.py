"""One generated case, and the random generator that draws it.

Object names contain the name of the case, so that leftovers of one case in the scheduler's caches
can't affect the next case.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

Plain = dict[str, Any]

GPU = "nvidia.com/gpu"
NAMESPACES = {
    "hub": {"team": "hub"},
    "research": {"team": "research", "tier": "gold"},
    "teaching": {"tier": "gold"},
}
ZONES = ("zone-a", "zone-b", "zone-c")
MODELS = ("NVIDIA-A100-SXM4-40GB", "Tesla-T4", "NVIDIA-H100-80GB-HBM3")
# Values for Gt and Lt; some aren't an int64.
GPU_MEMORIES = ("15360", "40960", "81559", "24GB", "0040960", "99999999999999999999")
PRIORITIES = {"placeholder": -10, "batch": -1, "course": 100, "urgent": 1000}
RUNTIME_CLASSES = ("kata", "gpu-runtime")
ENDING = "2026-01-01T00:00:00Z"


@dataclass
class Case:
    """One cluster and the pod to place.

    Attributes:
        name: Family and seed; part of every object's name.
        objects: Plural of a kind -> objects as in `kubectl get -o json`. An object with a
            deletionTimestamp is deleted, but a finalizer or its grace period keeps it.
        earlier: Pods that the scheduler answers before the pod to place; then another client
            writes their status, if they have one.
        pod: The pod to place.
    """

    name: str
    objects: dict[str, list[Plain]] = field(default_factory=dict)
    earlier: list[Plain] = field(default_factory=list)
    pod: Plain = field(default_factory=dict)

    def add(self, plural: str, *objects: Plain) -> None:
        self.objects.setdefault(plural, []).extend(objects)

    @property
    def nodes(self) -> list[Plain]:
        return self.objects.get("nodes", [])


class Draw(random.Random):
    """A random generator with shortcuts for the case generators."""

    def maybe(self, chance: float) -> bool:
        return self.random() < chance

    def some(self, values: Any, most: int | None = None, least: int = 0) -> list[Any]:
        values = list(values)
        return self.sample(values, self.randint(least, min(len(values), most or len(values))))
