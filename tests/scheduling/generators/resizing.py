"""The family about pods during an in-place resize."""

from __future__ import annotations

from tests.scheduling.generators.case import GPU, Case, Draw, Plain
from tests.scheduling.generators.cluster import start
from tests.scheduling.generators.pods import add_pod_level_resources


def resize(draw: Draw, case: Case) -> None:
    """Make bound pods whose status and spec have different resources."""
    start(draw, case, nodes=(1, 3), pods=(1, 8), gpu_chance=0.2)
    for each in case.objects["pods"]:
        if draw.maybe(0.2):
            add_pod_level_resources(draw, each)
        if draw.maybe(0.8):
            each["status"] = resizing(draw, each) | {"phase": "Running"}
    requests = {
        "cpu": draw.choice(["100m", "1", "2", "3500m"]),
        "memory": draw.choice(["1Gi", "4Gi", "8000000000"]),
    }
    case.pod["spec"]["containers"][0]["resources"] = {"requests": requests}


def resizing(draw: Draw, made: Plain) -> Plain:
    spec = made["spec"]
    status: Plain = {
        "containerStatuses": [container_status(draw, each) for each in spec["containers"]]
    }
    if inits := spec.get("initContainers"):
        status["initContainerStatuses"] = [container_status(draw, each) for each in inits]
    if "resources" in spec:
        status |= actual_resources(draw)
    if draw.maybe(0.4):
        reason = draw.choice(["Infeasible", "Infeasible", "Deferred"])
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def container_status(draw: Draw, spec: Plain) -> Plain:
    return {
        "name": spec["name"],
        "image": "i",
        "imageID": "i",
        "ready": True,
        "restartCount": 0,
        **actual_resources(draw, spec["resources"].get("limits", {})),
    }


def actual_resources(draw: Draw, limits: Plain | None = None) -> Plain:
    figures = [
        {"cpu": draw.choice(["100m", "1", "2500001u"]), "memory": draw.choice(["1Gi", "5e9"])}
        for _ in range(2)
    ]
    gpus = {GPU: limits[GPU]} if limits and GPU in limits else {}
    made: Plain = {}
    if draw.maybe(0.85):
        made["resources"] = {"requests": figures[0] | gpus}
    if draw.maybe(0.6):
        made["allocatedResources"] = figures[1] | gpus
    return made
