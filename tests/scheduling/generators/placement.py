"""Generates placement rules: affinity, topology spread and host ports."""

from __future__ import annotations

from collections.abc import Sequence

from tests.scheduling.generators.case import GPU_MEMORIES, MODELS, NAMESPACES, ZONES, Draw, Plain


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


def all_namespaces_but(draw: Draw) -> Plain:
    """Return a namespace selector that only excludes labels."""
    expression = draw.choice(
        [
            {"key": "tier", "operator": "DoesNotExist"},
            {"key": "team", "operator": "NotIn", "values": draw.some(NAMESPACES, least=1)},
        ]
    )
    return {"matchExpressions": [expression]}


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
            [
                {},
                {"matchLabels": {"tier": "gold"}},
                {"matchLabels": {"team": "hub"}},
                all_namespaces_but(draw),
            ]
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
        # The scheduler keeps a set of ports, not counts: if two pods have the same port and one
        # ends, it considers the port free. It would never bind both pods, but our cases do.
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
            if same not in used:  # the API server refuses duplicates
                used.add(same)
                one.setdefault("ports", []).append(port)


def use_host_network(made: Plain) -> None:
    """Use the host network: each port of the pod is then a port of its node."""
    made["spec"]["hostNetwork"] = True
    for one in made["spec"]["containers"] + made["spec"].get("initContainers", []):
        for port in one.get("ports", []):
            port["containerPort"] = port["hostPort"]


def make_kin(made: Plain, other: Plain) -> None:
    """Give a pod the namespace and labels of another, so that the same selectors match both."""
    made["metadata"]["namespace"] = other["metadata"]["namespace"]
    made["metadata"]["labels"] = dict(other["metadata"]["labels"])
