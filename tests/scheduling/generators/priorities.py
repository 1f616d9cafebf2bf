"""Families about preemption: pods that can preempt others, or that already have."""

from __future__ import annotations

from tests.scheduling.generators.case import GPU, PRIORITIES, Case, Draw, Plain
from tests.scheduling.generators.cluster import start
from tests.scheduling.generators.placement import add_host_ports, make_kin, pod_affinity, spread
from tests.scheduling.generators.pods import bound, pod
from tests.scheduling.generators.tolerations import taint_nodes


def preemption(draw: Draw, case: Case) -> None:
    """Make full nodes, pods of every priority, and a pod that may preempt some of them."""
    start(draw, case, nodes=(1, 4), pods=(0, 6), gpu_chance=0.3)
    for each in case.nodes:
        if draw.maybe(0.8):
            occupy_gpus(draw, case, each)
    taint_nodes(draw, case.nodes, 0.1)
    with_ports = set()
    for each in case.objects["pods"]:
        each["spec"]["priorityClassName"] = draw.choices(list(PRIORITIES), [3, 3, 3, 1])[0]
        node = each["spec"].get("nodeName")
        # If one of two pods with the same port goes, the scheduler thinks that the port is free:
        # see `add_host_ports`.
        if draw.maybe(0.15) and node not in with_ports:
            with_ports.add(node)
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
    """Give a node some GPUs, and pods that hold all or most of them."""
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
    """Add earlier pods that wait for their victims, which never end without a kubelet."""
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
    """Return a pod that fits on no node, but that an autoscaler has nominated to one."""
    made = pod(draw, f"{case.name}-nominated")
    make_demanding(draw, made)
    made["spec"]["priorityClassName"] = draw.choice(["batch", "course", "urgent"])
    made["spec"]["nodeSelector"] = {"absent": ""}
    made["status"] = {"nominatedNodeName": draw.choice(case.nodes)["metadata"]["name"]}
    return made
