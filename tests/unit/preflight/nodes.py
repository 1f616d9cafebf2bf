"""Node groups and busy nodes, for questions about nodes to come."""

from __future__ import annotations

from gpuspawner.offers import Accelerator, ScaleUp
from tests.unit.scaling.outlooks import T4, Plain, node


def group(name: str, target: int, most: int) -> str:
    return f"- name: {name}\n  health: {{cloudProviderTarget: {target}, maxSize: {most}}}\n"


def declared(most: int) -> Accelerator:
    return Accelerator("t4", "T4", "nvidia.com/gpu", node_selector=T4, scale_up=ScaleUp(most, 8))


def busy_node(gpus: int, memory: str = "32Gi", **labels: str) -> Plain:
    return node("n", gpus, memory, {**T4, **labels}, unschedulable=True)
