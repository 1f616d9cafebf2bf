"""Generates nodes with unusual amounts and labels."""

from __future__ import annotations

from tests.scheduling.generators.case import GPU, GPU_MEMORIES, MODELS, ZONES, Draw, Plain


def node(draw: Draw, name: str) -> Plain:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": draw.choice(["amd64", "arm64"])}
    if draw.maybe(0.85):
        labels["topology.kubernetes.io/zone"] = draw.choice(ZONES)
    if draw.maybe(0.5):
        labels["topology.kubernetes.io/region"] = "region-1"
    allocatable = {
        "cpu": draw.choice(["2", "4", "7910m", "15.5", "32"]),
        "memory": draw.choice(["8Gi", "16e9", "64G", "31441028Ki", "1025Mi", "8589934592500m"]),
        "pods": draw.choices(["110", "6", "3", "0"], [80, 10, 8, 2])[0],
        "ephemeral-storage": "100Gi",
    }
    if draw.maybe(0.75):
        labels["nvidia.com/gpu.product"] = draw.choice(MODELS)
        allocatable[GPU] = draw.choice(["0", "1", "2", "4", "8", "0.008k"])
        if draw.maybe(0.7):
            labels["nvidia.com/gpu.memory"] = draw.choice(GPU_MEMORIES)
    if draw.maybe(0.2):
        allocatable["nvidia.com/mig-1g.5gb"] = draw.choice(["2", "7"])
    if draw.maybe(0.2):
        allocatable["hugepages-2Mi"] = draw.choice(["0", "4Mi", "1Gi"])
    if draw.maybe(0.03):
        del allocatable["pods"]
    ready = draw.choice(["True", "True", "False", "Unknown"])
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True} if draw.maybe(0.08) else {},
        "status": {
            "capacity": dict(allocatable),
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
