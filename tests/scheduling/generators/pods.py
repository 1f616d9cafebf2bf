"""Generates pods and their requests."""

from __future__ import annotations

from tests.scheduling.generators.case import ENDING, GPU, NAMESPACES, PRIORITIES, Case, Draw, Plain


def container(draw: Draw, name: str, gpu_chance: float = 0.5) -> Plain:
    requests: Plain = {}
    limits: Plain = {}
    if draw.maybe(0.7):
        requests["cpu"] = draw.choice(["0", "100m", "100001u", "0.5", "1", "1500m", "1e-9", "3"])
    if draw.maybe(0.6):
        requests["memory"] = draw.choice(["0", "1", "129M", "0.5Gi", "2Gi", "7.9Gi", "1e10", "1n"])
    if draw.maybe(gpu_chance):
        limits[GPU] = draw.choice(["1", "1", "1", "2", "4", "0", "0.001k"])
        if draw.maybe(0.5):
            requests[GPU] = limits[GPU]
    if draw.maybe(0.04):
        limits["nvidia.com/mig-1g.5gb"] = draw.choice(["1", "3"])
    if draw.maybe(0.08):
        requests["ephemeral-storage"] = draw.choice(["1Gi", "60Gi"])
    if draw.maybe(0.03):
        requests.setdefault("cpu", "100m")
        requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = draw.choice(["2Mi", "4Mi", "8Mi"])
    if draw.maybe(0.1) and "cpu" not in requests:
        limits["cpu"] = "1"  # the API server copies it to the request
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": "i", "resources": resources}


def pod(draw: Draw, name: str, gpu_chance: float = 0.5) -> Plain:
    spec: Plain = {"containers": [container(draw, "main", gpu_chance)]}
    if draw.maybe(0.2):
        spec["containers"].append(container(draw, "side", gpu_chance / 2))
    labels = {"app": draw.choice(["jupyterhub", "train", "serve"])}
    if draw.maybe(0.6):
        labels["team"] = draw.choice(["red", "blue"])
    return {
        "metadata": {"name": name, "namespace": draw.choice(list(NAMESPACES)), "labels": labels},
        "spec": spec,
    }


def add_init_containers(draw: Draw, made: Plain) -> None:
    inits = [container(draw, f"init-{index}", 0.2) for index in range(draw.randint(1, 3))]
    for each in inits:
        if draw.maybe(0.5):
            each["restartPolicy"] = "Always"
    made["spec"]["initContainers"] = inits


def add_pod_level_resources(draw: Draw, made: Plain) -> None:
    """Add pod-level amounts, large enough for all containers as the API server demands."""
    amounts = {"cpu": draw.choice(["12", "14500m"]), "memory": draw.choice(["30Gi", "40e9"])}
    field = draw.choice(["requests", "requests", "limits"])
    made["spec"]["resources"] = {field: dict(draw.some(amounts.items(), least=1))}
    # Of several such requests, the API server makes a default that is less than it then demands.
    for each in (*made["spec"]["containers"][1:], *made["spec"].get("initContainers", ())):
        requests = each["resources"].get("requests", {})
        for name, least in (("cpu", "1e-9"), ("memory", "1n")):
            if requests.get(name) == least:
                requests[name] = "1"
    if draw.maybe(0.15):
        for each in ("requests", "limits"):
            made["spec"]["resources"].setdefault(each, {})["hugepages-2Mi"] = "32Mi"


def bound(draw: Draw, case: Case, index: int, gpu_chance: float = 0.5) -> Plain:
    """Return a pod that is bound to a node, or to a node that doesn't exist."""
    made = pod(draw, f"{case.name}-p{index}", gpu_chance)
    names = [each["metadata"]["name"] for each in case.nodes]
    made["spec"]["nodeName"] = f"{case.name}-gone" if draw.maybe(0.05) else draw.choice(names)
    phase = draw.choices(["Running", "Pending", "Succeeded", "Failed"], [80, 10, 5, 5])[0]
    made["status"] = {"phase": phase}
    if draw.maybe(0.1):
        made["metadata"]["deletionTimestamp"] = ENDING
    if draw.maybe(0.1):
        made["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": "plugin",
                "uid": "c0ffee00-0000-4000-8000-000000000000",
                "controller": True,
            }
        ]
    if draw.maybe(0.1):
        add_init_containers(draw, made)
    if draw.maybe(0.1):
        made["spec"]["runtimeClassName"] = "kata"
    return made


def prioritize(draw: Draw, made: Plain, chance: float) -> None:
    if draw.maybe(chance):
        made["spec"]["priorityClassName"] = draw.choice(list(PRIORITIES))
