"""Generates taints of nodes and tolerations of pods."""

from __future__ import annotations

from tests.scheduling.generators.case import GPU, Draw, Plain

TAINTS = (
    (GPU, "present"),
    ("hub.jupyter.org/dedicated", "user"),
    ("maintenance", ""),
    ("spot", "true"),
)


def taint(draw: Draw) -> Plain:
    key, value = draw.choice(TAINTS)
    effect = draw.choice(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
    made = {"key": key, "effect": effect}
    return made | {"value": value} if value and draw.maybe(0.85) else made


def taint_nodes(draw: Draw, nodes: list[Plain], chance: float) -> None:
    for one in nodes:
        if draw.maybe(chance):
            drawn = [taint(draw) for _ in range(draw.randint(1, 3))]
            unique = {(each["key"], each["effect"]): each for each in drawn}
            one["spec"]["taints"] = list(unique.values())


def toleration(draw: Draw) -> Plain:
    key, value = draw.choice(TAINTS)
    made: Plain = {}
    if draw.maybe(0.6):
        made["operator"] = draw.choice(["Exists", "Equal"])
    if made.get("operator") != "Exists":
        made["value"] = draw.choice([value, value, "other"])
    if made.get("operator") != "Exists" or draw.maybe(0.85):  # an empty key must be Exists
        made["key"] = key
    if draw.maybe(0.5):
        made["effect"] = draw.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
        if made["effect"] == "NoExecute" and draw.maybe(0.5):
            made["tolerationSeconds"] = draw.choice([0, 30])
    return made
