"""A small cluster, and the availability of its accelerators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuspawner.cluster.health import Health, Live
from gpuspawner.offers.manifest import PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import Availability, Surveys
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scheduling import ClusterState
from tests.unit.makers import outlooks

Plain = dict[str, Any]
LIVE = Live(0.5)
LATER = Later(Placements())
T4 = {"counts": [2, 1], "node_selector": {"gpu": "t4"}}
OFFERS = Offers.parse(accelerators={"t4": T4})
STOCK: Plain = {
    "metadata": {"name": "jupyter-anna", "namespace": "hub"},
    "spec": {"containers": [{"name": "notebook", "image": "x"}]},
}


def node(
    name: str,
    gpus: int,
    *,
    spec: Plain | None = None,
    memory: str = "16Gi",
    capacity: int | None = None,
) -> Plain:
    made = outlooks.node(name, gpus, memory, {"gpu": "t4"}, **(spec or {}))
    has = str(gpus if capacity is None else capacity)
    made["status"]["capacity"] = {**made["status"]["allocatable"], "nvidia.com/gpu": has}
    return made


def pod(name: str, on: str, gpus: int = 0, memory: str = "0") -> Plain:
    requests = {"nvidia.com/gpu": str(gpus), "memory": memory}
    return {
        "metadata": {"name": name, "namespace": "other"},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


def look(
    nodes: list[Plain], pods: Iterable[Plain] = (), offers: Offers = OFFERS, stock: Plain = STOCK
) -> tuple[Availability, Availability]:
    """Return the availability of the first accelerator and of servers without one."""
    state = ClusterState.from_objects(
        nodes=nodes, pods=list(pods), deviceClasses=[], priorityClasses=[]
    )
    first, *_, plain = survey(state, to_come(state), LIVE, offers, stock, PodRules(), LATER)
    return first, plain


def survey(
    state: ClusterState,
    to_come: NodesToCome,
    health: Health,
    offers: Offers,
    stock: Plain | None,
    rules: PodRules,
    later: Later,
) -> tuple[Availability, ...]:
    """Return what a hub that has surveyed nothing yet finds out."""
    surveys = Surveys(state, to_come, later.placements)
    return surveys.survey(health, offers, stock, rules, later)


def to_come(state: ClusterState) -> NodesToCome:
    return outlooks.Cluster(state).to_come
