"""Whether a pod lacks a node is what its verdict says, in generated clusters."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gpuspawner.scheduling import ClusterState, evaluate
from tests.scheduling.generators import FAMILIES, generate
from tests.scheduling.test_vectors import lacks
from tests.unit.makers.objects import KINDS

EVERY_KIND = ("nodes", *KINDS)
SERVED = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_what_the_verdict_says(family: str) -> None:
    """Whichever pods may preempt others, and whichever kinds of objects are known."""
    different = []
    for seed in range(200):
        case, dice = generate(family, seed), random.Random(seed)
        known: dict[str, Any] = {it: case.objects.get(it.lower(), []) for it in EVERY_KIND}
        for each in [case.pod, *known["pods"]]:
            if dice.random() < 0.5:
                each["spec"]["priority"] = dice.choice([-1, 1, None])
        if dice.random() < 0.1:
            case.pod["spec"]["preemptionPolicy"] = "Never"
        if dice.random() < 0.1 and known["nodes"]:
            nominated = dice.choice(known["nodes"])["metadata"]["name"]
            case.pod["status"] = {"nominatedNodeName": nominated}
        if dice.random() < 0.1:
            known["deviceClasses"] = [SERVED]
        if dice.random() < 0.4:
            known[dice.choice(EVERY_KIND)] = None
        state = ClusterState.from_objects(**known)
        if not lacks(state, case.pod, evaluate(state, case.pod)):
            different.append(case.name)

    assert different == []
