"""Generates claims, volumes and storage classes, and the family `volumes`."""

from __future__ import annotations

from tests.scheduling.generators.case import ENDING, ZONES, Case, Draw, Plain
from tests.scheduling.generators.cluster import start

DRIVER = "disk.csi.example.com"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SIZES = ("1Gi", "5Gi", "5368709121", "10Gi", "1e10")
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def storage_class(
    draw: Draw, name: str, *, wait: bool, provisioner: str = DRIVER, topologies: float = 0.5
) -> Plain:
    made: Plain = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if wait else "Immediate",
    }
    if draw.maybe(topologies):
        key = draw.choice(["topology.kubernetes.io/zone", "topology.kubernetes.io/region"])
        values = draw.some([*ZONES, "region-1"], least=1)
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": key, "values": values}]}]
    return made


def volume(draw: Draw, case: Case, name: str, source: Plain | None = None) -> Plain:
    """Return a PersistentVolume with a node affinity, zone labels, both or neither."""
    spec: Plain = {
        "capacity": {"storage": draw.choice(SIZES)},
        "accessModes": ["ReadWriteOnce"],
        **(source or {"csi": {"driver": DRIVER, "volumeHandle": name}}),
    }
    labels = {}
    if draw.maybe(0.5):
        names = [each["metadata"]["name"] for each in case.nodes]
        spec["nodeAffinity"] = {"required": volume_affinity(draw, names)}
    if draw.maybe(0.4):
        prefix = draw.choice(["topology.kubernetes.io", "failure-domain.beta.kubernetes.io"])
        labels[f"{prefix}/zone"] = draw.choice(
            [*ZONES, "zone-a__zone-b", "zone-b__zone-c", "zone-a__zone-c"]
        )
        if draw.maybe(0.2):
            labels["topology.kubernetes.io/region"] = draw.choice(["region-1", "region-2"])
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def volume_affinity(draw: Draw, names: list[str]) -> Plain:
    if draw.maybe(0.2):
        expression: Plain = {
            "key": "kubernetes.io/hostname",
            "operator": "In",
            "values": [draw.choice(names)],
        }
    else:
        values = draw.some(ZONES, least=1)
        operator = draw.choice(["In", "In", "NotIn"])
        expression = {"key": "topology.kubernetes.io/zone", "operator": operator, "values": values}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def claim(draw: Draw, name: str, namespace: str, class_name: str | None) -> Plain:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": [draw.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])],
            "resources": {"requests": {"storage": draw.choice(SIZES)}},
            "storageClassName": class_name,
        },
    }


def bind(made: Plain, volume_name: str) -> None:
    made["spec"]["volumeName"] = volume_name
    made["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
    made["status"] = {"phase": "Bound"}


def mount(made: Plain, claim_name: str) -> None:
    volumes = made["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim_name}})


def bound_claim(draw: Draw, case: Case, name: str, namespace: str, lost: float = 0.1) -> Plain:
    """Add and return a claim that is bound to a volume; the volume may be missing."""
    made = claim(draw, name, namespace, f"{case.name}-immediate")
    held = volume(draw, case, f"{name}-volume")
    held["spec"]["storageClassName"] = f"{case.name}-immediate"
    held["spec"]["accessModes"] = made["spec"]["accessModes"]
    bind(made, held["metadata"]["name"])
    if not draw.maybe(lost):
        case.add("persistentvolumes", held)
    case.add("persistentvolumeclaims", made)
    return made


def claim_state(draw: Draw) -> str:
    return draw.choices(
        ["bound", "waiting", "local", "immediate", "lost", "deleting", "missing", "half", "class"],
        [40, 20, 24, 3, 2, 3, 3, 2, 3],
    )[0]


def add_claim_in_state(draw: Draw, case: Case, name: str, namespace: str, state: str) -> None:
    """Add a claim in a given state; add none for the state "missing"."""
    if state in {"bound", "lost", "deleting"}:
        made = bound_claim(draw, case, name, namespace)
        if state == "lost":
            made["status"] = {"phase": "Lost"}
        elif state == "deleting":
            made["metadata"]["deletionTimestamp"] = ENDING
    elif state != "missing":
        class_name = {"half": "immediate", "class": "none"}.get(state, state)
        made = claim(draw, name, namespace, f"{case.name}-{class_name}")
        if state == "half":  # names a volume, but the controller hasn't finished binding
            made["spec"]["volumeName"] = f"{case.name}-half"
        elif state == "local" and draw.maybe(0.25):
            made["spec"]["selector"] = {"matchLabels": {"tier": "fast"}}
        elif state == "local" and draw.maybe(0.1):
            made["spec"]["volumeMode"] = "Block"
        elif state == "waiting" and draw.maybe(0.15):
            made["metadata"]["annotations"] = {
                SELECTED_NODE: draw.choice(case.nodes)["metadata"]["name"]
            }
        case.add("persistentvolumeclaims", made)


def add_classes(draw: Draw, case: Case) -> None:
    case.add(
        "storageclasses",
        storage_class(draw, f"{case.name}-waiting", wait=True),
        storage_class(
            draw, f"{case.name}-local", wait=True, provisioner=NO_PROVISIONER, topologies=0
        ),
        storage_class(draw, f"{case.name}-immediate", wait=False, topologies=0),
    )


def volumes(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 6), pods=(0, 6), gpu_chance=0.2)
    add_classes(draw, case)
    namespace = case.pod["metadata"]["namespace"]
    only_local = draw.maybe(0.35)
    for index in range(draw.randint(1, 4) if only_local else draw.randint(0, 3)):
        case.add("persistentvolumes", free_volume(draw, case, index, namespace))
    for index in range(draw.choice([1, 2, 2]) if only_local else draw.choice([1, 1, 2])):
        name = f"{case.name}-c{index}"
        state = "local" if only_local else claim_state(draw)
        add_claim_in_state(draw, case, name, namespace, state)
        mount(case.pod, name)
        for each in case.objects["pods"]:
            if each["metadata"]["namespace"] == namespace and draw.maybe(0.2):
                mount(each, name)
    if draw.maybe(0.1):
        add_inline_disks(draw, case)
    if draw.maybe(0.05):
        case.pod["spec"].setdefault("volumes", []).append(
            {
                "name": "scratch",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": claim(draw, "", "", f"{case.name}-waiting")["spec"]
                    }
                },
            }
        )


def free_volume(draw: Draw, case: Case, index: int, namespace: str) -> Plain:
    """Return an unbound volume; it may be reserved for a claim, or unusable."""
    made = volume(draw, case, f"{case.name}-free-{index}")
    spec = made["spec"]
    spec["storageClassName"] = f"{case.name}-{draw.choice(['local', 'local', 'waiting'])}"
    if draw.maybe(0.2):
        name = draw.choice([f"{case.name}-c0", f"{case.name}-c1", "other"])
        spec["claimRef"] = {"namespace": namespace, "name": name}
    if draw.maybe(0.1):
        spec["volumeMode"] = "Block"
    if draw.maybe(0.3):
        spec["accessModes"] = draw.some(["ReadWriteOnce", "ReadWriteMany"], least=1)
    if draw.maybe(0.1):
        made["metadata"]["deletionTimestamp"] = ENDING
    if draw.maybe(0.1):
        made["status"]["phase"] = draw.choice(["Released", "Failed"])
    if draw.maybe(0.5):
        made["metadata"]["labels"]["tier"] = draw.choice(["fast", "slow"])
    return made


def add_inline_disks(draw: Draw, case: Case) -> None:
    for each in [*case.objects["pods"], case.pod]:
        disk = {"pdName": draw.choice(["disk-1", "disk-2"]), "readOnly": draw.maybe(0.5)}
        each["spec"].setdefault("volumes", []).append({"name": "disk", "gcePersistentDisk": disk})
