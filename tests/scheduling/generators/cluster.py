"""The objects with which every case starts."""

from __future__ import annotations

from tests.scheduling.generators.case import Case, Draw
from tests.scheduling.generators.nodes import node
from tests.scheduling.generators.pods import bound, pod


def start(
    draw: Draw, case: Case, nodes: tuple[int, int], pods: tuple[int, int], gpu_chance: float = 0.5
) -> None:
    """Add nodes and bound pods to a case, and a simple pod to place."""
    count = draw.randint(*nodes)
    case.add("nodes", *(node(draw, f"{case.name}-n{index}") for index in range(count)))
    case.add(
        "pods", *(bound(draw, case, index, gpu_chance) for index in range(draw.randint(*pods)))
    )
    case.pod = pod(draw, f"{case.name}-pod", gpu_chance)
