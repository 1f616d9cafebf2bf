"""Families about CSI drivers: volume limits of nodes, storage capacity, and missing drivers."""

from __future__ import annotations

from tests.scheduling.generators.case import ZONES, Case, Draw, Plain
from tests.scheduling.generators.claims import (
    DRIVER,
    add_classes,
    bound_claim,
    claim,
    mount,
    storage_class,
)
from tests.scheduling.generators.cluster import start


def csi_limits(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 4), pods=(1, 8), gpu_chance=0.05)
    add_classes(draw, case)
    for each in case.nodes:
        if draw.maybe(0.9):
            case.add("csinodes", csi_node(draw, each["metadata"]["name"]))
    namespace = case.pod["metadata"]["namespace"]
    names = [f"{case.name}-c{index}" for index in range(draw.randint(1, 3))]
    for name in names:
        if draw.maybe(0.9):
            made = bound_claim(draw, case, name, namespace, lost=0.02)
        else:
            made = claim(draw, name, namespace, f"{case.name}-waiting")
            case.add("persistentvolumeclaims", made)
        made["spec"]["accessModes"] = ["ReadWriteOnce"]
        mount(case.pod, name)
    for each in case.objects["pods"]:
        hold_volumes(draw, case, each, names if each["metadata"]["namespace"] == namespace else [])
    for made in case.objects.get("persistentvolumes", []):
        made["spec"].pop("nodeAffinity", None)
        made["metadata"]["labels"] = {}
        if draw.maybe(0.15):
            case.add("volumeattachments", attachment(draw, case, made["metadata"]["name"]))


def hold_volumes(draw: Draw, case: Case, made: Plain, shared: list[str]) -> None:
    """Give a bound pod its own claims, and maybe one that it shares with the pod to place."""
    for claim_name in draw.some(shared, most=1) if draw.maybe(0.4) else []:
        mount(made, claim_name)
    for number in range(draw.choice([0, 1, 1, 2])):
        name = f"{made['metadata']['name']}-{number}"
        bound_claim(draw, case, name, made["metadata"]["namespace"], lost=0.02)
        mount(made, name)


def csi_node(draw: Draw, name: str) -> Plain:
    drivers = []
    for driver in draw.choice([[DRIVER], [DRIVER], [DRIVER, "other.csi.example.com"], []]):
        one: Plain = {"name": driver, "nodeID": name}
        if draw.maybe(0.85):
            one["allocatable"] = {"count": draw.choice([0, 1, 1, 2, 2, 4])}
        drivers.append(one)
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def attachment(draw: Draw, case: Case, volume_name: str) -> Plain:
    return {
        "metadata": {"name": f"{volume_name}-attached"},
        "spec": {
            "attacher": draw.choice([DRIVER, DRIVER, "other.csi.example.com"]),
            "nodeName": draw.choice(case.nodes)["metadata"]["name"],
            "source": {"persistentVolumeName": draw.choice([volume_name, f"{case.name}-gone"])},
        },
    }


def csi_drivers(draw: Draw, case: Case) -> None:
    """Make a driver that keeps its pods from nodes without it, or doesn't."""
    start(draw, case, nodes=(1, 5), pods=(0, 4), gpu_chance=0.05)
    driver = f"{case.name}.csi.example.com"
    add_classes(draw, case)
    waiting = f"{case.name}-waits"
    case.add(
        "storageclasses", storage_class(draw, waiting, wait=True, provisioner=driver, topologies=0)
    )
    if draw.maybe(0.9):
        spec: Plain = {"attachRequired": True}
        if draw.maybe(0.85):
            spec["preventPodSchedulingIfMissing"] = draw.maybe(0.85)
        case.add("csidrivers", {"metadata": {"name": driver}, "spec": spec})
    for each in case.nodes:
        if draw.maybe(0.85):
            made = csi_node(draw, each["metadata"]["name"])
            for one in made["spec"]["drivers"][:1]:
                one["name"] = driver
            case.add("csinodes", made)
    namespace = case.pod["metadata"]["namespace"]
    for index in range(draw.choice([1, 1, 2])):
        name = f"{case.name}-c{index}"
        if draw.maybe(0.6):
            bound_claim(draw, case, name, namespace, lost=0)
            held = case.objects["persistentvolumes"][-1]["spec"]
            held["csi"]["driver"] = driver
            held.pop("nodeAffinity", None)
        else:
            case.add("persistentvolumeclaims", claim(draw, name, namespace, waiting))
        mount(case.pod, name)


def storage_capacity(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 6), pods=(0, 3), gpu_chance=0.05)
    driver = f"{case.name}.csi.example.com"
    name = f"{case.name}-waiting"
    case.add(
        "storageclasses",
        storage_class(draw, name, wait=True, provisioner=driver, topologies=0.2),
    )
    if draw.maybe(0.95):
        spec: Plain = {"attachRequired": False}
        if draw.maybe(0.95):
            spec["storageCapacity"] = draw.maybe(0.92)
        case.add("csidrivers", {"metadata": {"name": driver}, "spec": spec})
    for index in range(draw.choice([0, 1, 1, 2])):
        case.add("csistoragecapacities", capacity(draw, case, f"{case.name}-{index}", name))
    for index in range(draw.choice([1, 1, 1, 2])):
        made = claim(draw, f"{case.name}-c{index}", case.pod["metadata"]["namespace"], name)
        case.add("persistentvolumeclaims", made)
        mount(case.pod, made["metadata"]["name"])


def capacity(draw: Draw, case: Case, name: str, class_name: str) -> Plain:
    made: Plain = {
        "metadata": {"name": name, "namespace": "hub"},
        "storageClassName": class_name if draw.maybe(0.75) else f"{case.name}-other",
    }
    if draw.maybe(0.85):
        made["nodeTopology"] = draw.choice(
            [
                {"matchLabels": {"topology.kubernetes.io/zone": draw.choice(ZONES)}},
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
                {},
            ]
        )
    if draw.maybe(0.9):
        made["capacity"] = draw.choice(["0", "4.5Gi", "5Gi", "5Gi", "100Gi", "5368709121"])
    if draw.maybe(0.3):
        made["maximumVolumeSize"] = draw.choice(["1Gi", "5Gi", "50Gi"])
    return made
