"""Families about single filters, and a mixed one."""

from __future__ import annotations

from tests.scheduling.generators.case import ENDING, MODELS, RUNTIME_CLASSES, ZONES, Case, Draw
from tests.scheduling.generators.cluster import start
from tests.scheduling.generators.placement import (
    TOPOLOGY_KEYS,
    add_host_ports,
    all_namespaces_but,
    make_kin,
    node_affinity,
    pod_affinity,
    spread,
    use_host_network,
)
from tests.scheduling.generators.pods import (
    add_init_containers,
    add_pod_level_resources,
    container,
    prioritize,
)
from tests.scheduling.generators.tolerations import taint_nodes, toleration


def resources(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 6), pods=(0, 18))
    if draw.maybe(0.4):
        add_init_containers(draw, case.pod)
    if draw.maybe(0.15):
        add_pod_level_resources(draw, case.pod)
    if draw.maybe(0.15):
        case.pod["spec"]["runtimeClassName"] = draw.choice(RUNTIME_CLASSES)
    if draw.maybe(0.15):
        case.pod["spec"]["containers"].append(container(draw, "third"))


def taints(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 8), pods=(0, 5))
    taint_nodes(draw, case.nodes, 0.8)
    case.pod["spec"]["tolerations"] = [toleration(draw) for _ in range(draw.randint(0, 4))]


def affinity(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(2, 8), pods=(0, 5), gpu_chance=0.2)
    names = [each["metadata"]["name"] for each in case.nodes]
    if draw.maybe(0.85):
        case.pod["spec"]["affinity"] = {"nodeAffinity": node_affinity(draw, names)}
    if draw.maybe(0.3):
        case.pod["spec"]["nodeSelector"] = {
            "topology.kubernetes.io/zone": draw.choice([*ZONES, ""]),
            **({"nvidia.com/gpu.product": draw.choice(MODELS)} if draw.maybe(0.3) else {}),
        }


def ports(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(1, 4), pods=(2, 10), gpu_chance=0.1)
    for each in [*case.objects["pods"], case.pod]:
        if draw.maybe(0.2):
            add_init_containers(draw, each)
        add_host_ports(draw, each)
        if draw.maybe(0.15):
            use_host_network(each)


def topology(draw: Draw, case: Case) -> None:
    start(draw, case, nodes=(2, 8), pods=(2, 16), gpu_chance=0.1)
    taint_nodes(draw, case.nodes, 0.2)
    for each in case.objects["pods"]:
        if draw.maybe(0.35):
            each["spec"]["affinity"] = pod_affinity(draw, 0.3, 0.8)
        if draw.maybe(0.25):
            each["metadata"]["deletionTimestamp"] = ENDING
        if draw.maybe(0.5):
            make_kin(each, case.pod)
    if draw.maybe(0.6):
        case.pod["spec"]["affinity"] = pod_affinity(draw, 0.6, 0.5)
    if draw.maybe(0.6):
        case.pod["spec"]["topologySpreadConstraints"] = spread(draw)
    if draw.maybe(0.3):
        case.pod["metadata"]["labels"]["tier"] = "gold"


def namespaces(draw: Draw, case: Case) -> None:
    """Make similar pods in all namespaces, and a pod whose term leaves some namespaces out."""
    start(draw, case, nodes=(1, 4), pods=(1, 6), gpu_chance=0.05)
    for each in case.objects["pods"]:
        each["metadata"]["labels"] = dict(case.pod["metadata"]["labels"])
    term = {
        "topologyKey": draw.choice(TOPOLOGY_KEYS[1:3]),
        "labelSelector": {"matchLabels": {"app": case.pod["metadata"]["labels"]["app"]}},
        "namespaceSelector": all_namespaces_but(draw),
    }
    kind = draw.choice(["podAffinity", "podAntiAffinity"])
    case.pod["spec"]["affinity"] = {
        kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }


def even_spread(draw: Draw, case: Case) -> None:
    """Make large nodes and similar pods, so that only the topology spread decides."""
    start(draw, case, nodes=(2, 5), pods=(6, 18), gpu_chance=0)
    for each in case.nodes:
        each["spec"] = {}
        each["status"]["allocatable"] |= {"cpu": "32", "memory": "64Gi", "pods": "110"}
        each["metadata"]["labels"]["topology.kubernetes.io/zone"] = draw.choice(ZONES[:2])
    if draw.maybe(0.8):  # only one node is left for the pod; the others still count as domains
        for each in draw.sample(case.nodes, len(case.nodes) - 1):
            each["spec"]["taints"] = [{"key": "maintenance", "effect": "NoSchedule"}]
    plain = [{"name": "main", "image": "i"}]
    for each in case.objects["pods"]:
        each["spec"]["containers"] = plain
        if draw.maybe(0.85):
            make_kin(each, case.pod)
        if draw.maybe(0.25):
            each["metadata"]["deletionTimestamp"] = ENDING
    spec = case.pod["spec"]
    spec["containers"] = plain
    spec["topologySpreadConstraints"] = spread(draw, TOPOLOGY_KEYS[:3])
    for each in spec["topologySpreadConstraints"]:
        each["maxSkew"] = draw.choice([1, 1, 1, 2])
        if draw.maybe(0.7):
            each["labelSelector"] = {"matchLabels": {"app": case.pod["metadata"]["labels"]["app"]}}
    if draw.maybe(0.3):
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": ZONES[0]}


def mixed(draw: Draw, case: Case) -> None:
    topology(draw, case)
    taint_nodes(draw, case.nodes, 0.2)
    names = [each["metadata"]["name"] for each in case.nodes]
    spec = case.pod["spec"]
    if draw.maybe(0.5):
        spec["tolerations"] = [toleration(draw) for _ in range(draw.randint(1, 3))]
    if draw.maybe(0.4):
        spec.setdefault("affinity", {})["nodeAffinity"] = node_affinity(draw, names)
    if draw.maybe(0.3):
        add_init_containers(draw, case.pod)
    if draw.maybe(0.2):
        add_host_ports(draw, case.pod)
    for each in [*case.objects["pods"], case.pod]:
        prioritize(draw, each, 0.3)
