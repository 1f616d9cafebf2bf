"""Random clusters, skewed toward trouble, that a real API server accepts.

A seed gives a family's case again on any machine. Names carry the case's own name, so that nothing
a scheduler still remembers of one cluster can touch the next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Plain = dict[str, Any]

GPU = "nvidia.com/gpu"
NAMESPACES = {
    "hub": {"team": "hub"},
    "research": {"team": "research", "tier": "gold"},
    "teaching": {"tier": "gold"},
}
ZONES = ("zone-a", "zone-b", "zone-c")
MODELS = ("NVIDIA-A100-SXM4-40GB", "Tesla-T4", "NVIDIA-H100-80GB-HBM3")
# What a Gt or Lt compares: some are no int64 at all.
GPU_MEMORIES = ("15360", "40960", "81559", "24GB", "0040960", "99999999999999999999")
PRIORITIES = {"placeholder": -10, "batch": -1, "course": 100, "urgent": 1000}
RUNTIME_CLASSES = ("kata", "gpu-runtime")
ENDING = "2026-01-01T00:00:00Z"
TAINTS = (
    (GPU, "present"),
    ("hub.jupyter.org/dedicated", "user"),
    ("maintenance", ""),
    ("spot", "true"),
)


@dataclass
class Case:
    """One cluster and the pod to place.

    Attributes:
        name: Family and seed; part of every object's name.
        objects: Plural of a kind -> objects as `kubectl get -o json` shows them. One with a
            deletionTimestamp is to be deleted, and kept by a finalizer or by its grace period.
        earlier: Pods that the scheduler itself must have answered before the pod comes; a status
            is what somebody else then writes into them.
        pod: The pod to place.
    """

    name: str
    objects: dict[str, list[Plain]] = field(default_factory=dict)
    earlier: list[Plain] = field(default_factory=list)
    pod: Plain = field(default_factory=dict)

    def add(self, plural: str, *objects: Plain) -> None:
        self.objects.setdefault(plural, []).extend(objects)

    @property
    def nodes(self) -> list[Plain]:
        return self.objects.get("nodes", [])


class Draw(random.Random):
    """Random values with the words that the generators speak."""

    def maybe(self, chance: float) -> bool:
        return self.random() < chance

    def some(self, values: Any, most: int | None = None, least: int = 0) -> list[Any]:
        values = list(values)
        return self.sample(values, self.randint(least, min(len(values), most or len(values))))


# --- nodes -------------------------------------------------------------------------------------


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


# --- pods --------------------------------------------------------------------------------------


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
        limits["cpu"] = "1"  # the API server makes it the request too
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
    """Large ones: the API server wants them to hold what the containers ask."""
    requests = {"cpu": draw.choice(["12", "14500m"]), "memory": draw.choice(["30Gi", "40e9"])}
    made["spec"]["resources"] = {"requests": requests}


def bound(draw: Draw, case: Case, index: int, gpu_chance: float = 0.5) -> Plain:
    """A pod that already is on a node, or says it is on one that is gone."""
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


# --- affinity, spread, ports -------------------------------------------------------------------


def node_requirement(draw: Draw, names: list[str]) -> Plain:
    key = draw.choice(
        [
            "nvidia.com/gpu.memory",
            "nvidia.com/gpu.product",
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
            "absent",
        ]
    )
    operator = draw.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    made: Plain = {"key": key, "operator": operator}
    if operator in {"Gt", "Lt"}:
        made["values"] = [draw.choice(["0", "15360", "40960", "0040960", "40959.5", "1e5"])]
    elif operator in {"In", "NotIn"}:
        made["values"] = draw.some([*ZONES, *MODELS, *names[:2], *GPU_MEMORIES[:3]], 5, least=1)
    return made


def node_affinity(draw: Draw, names: list[str]) -> Plain:
    terms: list[Plain] = []
    for _ in range(draw.randint(1, 3)):
        term: Plain = {}
        if draw.maybe(0.75):
            term["matchExpressions"] = [
                node_requirement(draw, names) for _ in range(draw.choice([1, 1, 2]))
            ]
        if draw.maybe(0.35):
            operator = draw.choice(["In", "In", "NotIn"])
            term["matchFields"] = [
                {"key": "metadata.name", "operator": operator, "values": [draw.choice(names)]}
            ]
        terms.append(term)
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def label_selector(draw: Draw) -> Plain:
    made: Plain = {}
    if draw.maybe(0.7):
        made["matchLabels"] = {"app": draw.choice(["jupyterhub", "train", "serve"])}
    if draw.maybe(0.4):
        operator = draw.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        expression: Plain = {"key": draw.choice(["team", "absent"]), "operator": operator}
        if operator in {"In", "NotIn"}:
            expression["values"] = draw.some(["red", "blue"], least=1)
        made["matchExpressions"] = [expression]
    return made


TOPOLOGY_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/region",
    "absent",
)


def pod_term(draw: Draw) -> Plain:
    made: Plain = {"topologyKey": draw.choice(TOPOLOGY_KEYS[:4] if draw.maybe(0.9) else ["absent"])}
    if draw.maybe(0.93):
        made["labelSelector"] = label_selector(draw)
        if draw.maybe(0.15):
            made[draw.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["tier"]
    if draw.maybe(0.3):
        made["namespaces"] = draw.some([*NAMESPACES, "missing"], least=1)
    if draw.maybe(0.3):
        made["namespaceSelector"] = draw.choice(
            [{}, {"matchLabels": {"tier": "gold"}}, {"matchLabels": {"team": "hub"}}]
        )
    return made


def pod_affinity(draw: Draw, chance: float, anti_chance: float) -> Plain:
    made: Plain = {}
    for kind, likely in (("podAffinity", chance), ("podAntiAffinity", anti_chance)):
        if draw.maybe(likely):
            terms = [pod_term(draw) for _ in range(draw.choice([1, 1, 2]))]
            made[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return made


def spread(draw: Draw, keys: Sequence[str] = TOPOLOGY_KEYS) -> list[Plain]:
    made: dict[tuple[str, str], Plain] = {}
    for _ in range(draw.choice([1, 1, 2])):
        key = draw.choice(keys)
        hard = draw.maybe(0.9)
        one: Plain = {
            "maxSkew": draw.choice([1, 1, 2, 3]),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        if draw.maybe(0.9):
            one["labelSelector"] = draw.choice([{}, label_selector(draw), label_selector(draw)])
        if hard and draw.maybe(0.3):
            one["minDomains"] = draw.choice([1, 2, 3, 4])
        if one.get("labelSelector") == {} and draw.maybe(0.4):
            one["matchLabelKeys"] = [draw.choice(["team", "tier"])]
        for policy in draw.some(["nodeAffinityPolicy", "nodeTaintsPolicy"]):
            one[policy] = draw.choice(["Honor", "Ignore"])
        made[key, one["whenUnsatisfiable"]] = one
    return list(made.values())


def add_host_ports(draw: Draw, made: Plain) -> None:
    if made.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        # The scheduler keeps a set, no count: when of two pods with one port the first ends, it
        # takes the port for free. It would never have bound the second; we do bind both.
        return
    containers = made["spec"]["containers"] + made["spec"].get("initContainers", [])
    used = set()
    for one in containers:
        for _ in range(draw.randint(0, 2)):
            port = {
                "containerPort": 80,
                "hostPort": draw.choice([8080, 8081, 9000]),
                "protocol": draw.choice(["TCP", "TCP", "UDP"]),
                "hostIP": draw.choice(["", "0.0.0.0", "127.0.0.1", "10.1.1.1"]),
            }
            same = (port["hostPort"], port["protocol"])
            if same not in used:  # the API server wants them apart
                used.add(same)
                one.setdefault("ports", []).append(port)


def make_kin(made: Plain, other: Plain) -> None:
    """Put a pod where most selectors of another one look for it."""
    made["metadata"]["namespace"] = other["metadata"]["namespace"]
    made["metadata"]["labels"] = dict(other["metadata"]["labels"])


# --- families ----------------------------------------------------------------------------------


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


def use_host_network(made: Plain) -> None:
    """Give the pod its node's network: each port that it names is the node's."""
    made["spec"]["hostNetwork"] = True
    for one in made["spec"]["containers"] + made["spec"].get("initContainers", []):
        for port in one.get("ports", []):
            port["containerPort"] = port["hostPort"]


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


def even_spread(draw: Draw, case: Case) -> None:
    """Roomy nodes and pods of one kind: nothing but their spread decides."""
    start(draw, case, nodes=(2, 5), pods=(6, 18), gpu_chance=0)
    for each in case.nodes:
        each["spec"] = {}
        each["status"]["allocatable"] |= {"cpu": "32", "memory": "64Gi", "pods": "110"}
        each["metadata"]["labels"]["topology.kubernetes.io/zone"] = draw.choice(ZONES[:2])
    if draw.maybe(0.8):  # one node has to show whether it is right; the others count all the same
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


def preemption(draw: Draw, case: Case) -> None:
    """Full nodes, pods of every priority, and a pod that may push some away."""
    start(draw, case, nodes=(1, 4), pods=(0, 6), gpu_chance=0.3)
    for each in case.nodes:
        if draw.maybe(0.8):
            occupy_gpus(draw, case, each)
    taint_nodes(draw, case.nodes, 0.1)
    for each in case.objects["pods"]:
        each["spec"]["priorityClassName"] = draw.choices(list(PRIORITIES), [3, 3, 3, 1])[0]
        if draw.maybe(0.15):
            add_host_ports(draw, each)
        if draw.maybe(0.15):
            each["spec"]["affinity"] = pod_affinity(draw, 0.2, 0.8)
    make_demanding(draw, case.pod)
    spec = case.pod["spec"]
    spec["priorityClassName"] = draw.choice(
        ["batch", "course", "course", "urgent", "urgent", "urgent", "urgent-patient"]
    )
    if draw.maybe(0.1):
        spec["affinity"] = pod_affinity(draw, 0.6, 0.6)
    if draw.maybe(0.1):
        spec["topologySpreadConstraints"] = spread(draw)


def occupy_gpus(draw: Draw, case: Case, one: Plain) -> None:
    """Give a node some GPUs and pods that hold them, mostly all."""
    count = draw.choice([1, 2, 4])
    for amounts in (one["status"]["capacity"], one["status"]["allocatable"]):
        amounts |= {GPU: str(count), "cpu": "8", "memory": "64Gi", "pods": "110"}
    for _ in range(count - draw.maybe(0.15)):
        holder = bound(draw, case, len(case.objects["pods"]))
        holder["spec"]["nodeName"] = one["metadata"]["name"]
        holder["spec"]["containers"] = [holding(draw, gpus=1)]
        holder["status"] = {"phase": "Running"}
        case.add("pods", holder)


def make_demanding(draw: Draw, made: Plain) -> None:
    made["spec"]["containers"] = [holding(draw, gpus=draw.choice([1, 1, 1, 2, 2, 4]))]
    if draw.maybe(0.25):
        add_host_ports(draw, made)


def holding(draw: Draw, gpus: int) -> Plain:
    cpu = draw.choice(["0", "100m", "1"])
    limits = {GPU: str(gpus)}
    return {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": limits}}


def nominated(draw: Draw, case: Case) -> None:
    """Earlier pods of high priority wait for their victims, who never go: there is no kubelet."""
    preemption(draw, case)
    for index in range(draw.randint(1, 2)):
        earlier = pod(draw, f"{case.name}-earlier-{index}")
        make_demanding(draw, earlier)
        earlier["spec"]["priorityClassName"] = draw.choice(["course", "urgent"])
        if draw.maybe(0.2):
            earlier["spec"]["affinity"] = pod_affinity(draw, 0.2, 0.8)
        if draw.maybe(0.5):
            make_kin(earlier, case.pod)
        case.earlier.append(earlier)
    if draw.maybe(0.3):
        case.earlier.append(nominated_from_outside(draw, case))
    if draw.maybe(0.3):
        case.pod["spec"]["affinity"] = pod_affinity(draw, 0.9, 0.1)
    if draw.maybe(0.1):
        case.pod["spec"]["topologySpreadConstraints"] = spread(draw)
    case.pod["spec"]["priorityClassName"] = draw.choice(
        ["placeholder", "batch", "course", "course", "urgent", "urgent-patient"]
    )


def nominated_from_outside(draw: Draw, case: Case) -> Plain:
    """A pod that no node takes, but an autoscaler says that one will."""
    made = pod(draw, f"{case.name}-nominated")
    make_demanding(draw, made)
    made["spec"]["priorityClassName"] = draw.choice(["batch", "course", "urgent"])
    made["spec"]["nodeSelector"] = {"absent": ""}
    made["status"] = {"nominatedNodeName": draw.choice(case.nodes)["metadata"]["name"]}
    return made


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


def start(
    draw: Draw, case: Case, nodes: tuple[int, int], pods: tuple[int, int], gpu_chance: float = 0.5
) -> None:
    """Give a case its nodes, its bound pods and a plain pod to place."""
    count = draw.randint(*nodes)
    case.add("nodes", *(node(draw, f"{case.name}-n{index}") for index in range(count)))
    case.add(
        "pods", *(bound(draw, case, index, gpu_chance) for index in range(draw.randint(*pods)))
    )
    case.pod = pod(draw, f"{case.name}-pod", gpu_chance)


Family = Callable[[Draw, Case], None]

FAMILIES: dict[str, Family] = {
    each.__name__: each
    for each in (
        resources,
        taints,
        affinity,
        ports,
        topology,
        even_spread,
        mixed,
        preemption,
        nominated,
    )
}


def generate(family: str, seed: int, families: dict[str, Family] | None = None) -> Case:
    """Make the case that belongs to a family and a seed, the same on every machine."""
    case = Case(f"{family.replace('_', '-')}-{seed}")
    (families or FAMILIES)[family](Draw(f"{family}:{seed}"), case)
    return case
