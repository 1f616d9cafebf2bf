"""Fleets: the nodes of a local cluster, and the file format that describes them.

The file is YAML. Its key ``nodes`` has a list of groups of identical nodes::

    nodes:
      - name: t4
        count: 2
        labels: {cloud.google.com/gke-accelerator: nvidia-tesla-t4}
        taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
        allocatable: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}

gives the nodes t4-0 and t4-1. ``labels`` and ``taints`` may be left out. The key ``autoscaler``
names the autoscaler and has its settings: see `localcluster.clusterautoscaler.settings` and
`localcluster.karpenter.settings`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from localcluster import fields
from localcluster.clusterautoscaler.settings import (
    LARGEST,
    ClusterAutoscaler,
    Scaling,
    parse_cluster_autoscaler,
    parse_scaling,
)
from localcluster.fields import FleetError
from localcluster.karpenter.settings import Karpenter, parse_karpenter
from localcluster.taint import Taint, parse_taints

FLEETS = Path(__file__).parent / "fleets"

_AUTOSCALERS: dict[str, Callable[[str, object], ClusterAutoscaler | Karpenter]] = {
    "cluster-autoscaler": parse_cluster_autoscaler,
    "karpenter": parse_karpenter,
}


@dataclass(frozen=True)
class NodeGroup:
    """``count`` identical nodes, named ``name-0``, ``name-1`` and so on."""

    name: str
    count: int
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    scaling: Scaling | None = None

    def node_names(self) -> Iterator[str]:
        """Yield the name of each node of the group."""
        return (f"{self.name}-{number}" for number in range(self.count))


@dataclass(frozen=True)
class Fleet:
    """All nodes of a cluster, in groups of identical ones, and the autoscaler that adds more."""

    groups: tuple[NodeGroup, ...] = ()
    autoscaler: ClusterAutoscaler | Karpenter | None = None

    def node_names(self) -> Iterator[str]:
        """Yield the name of every node."""
        return (name for group in self.groups for name in group.node_names())


def load(name_or_file: str | Path) -> Fleet:
    """Read a fleet: a file, or the name of a fleet that this package ships.

    Raises:
        FleetError: there is no such fleet, or the file is not a fleet.
    """
    shipped = FLEETS / f"{name_or_file}.yaml"
    path = shipped if shipped.is_file() else Path(name_or_file)
    try:
        text = path.read_text()
    except OSError as error:
        known = ", ".join(names())
        raise FleetError(
            f"fleet {name_or_file!s}: neither a readable file ({error.strerror}) nor one of {known}"
        ) from error
    try:
        return parse(yaml.safe_load(text))
    except (yaml.YAMLError, FleetError) as error:
        raise FleetError(f"{path}: {error}") from error


def names() -> list[str]:
    """Return the names of the fleets that this package ships, sorted."""
    return sorted(path.stem for path in FLEETS.glob("*.yaml"))


def parse(data: object) -> Fleet:
    """Make a fleet from plain data, as YAML gives it.

    Raises:
        FleetError: a field is missing, unknown or has an invalid value.
    """
    given = fields.fields("fleet", data, required=("nodes",), optional=("autoscaler",))
    groups = tuple(
        _group(f"nodes[{number}]", item)
        for number, item in enumerate(fields.items("nodes", given["nodes"]))
    )
    taken: set[str] = set()
    for number, group in enumerate(groups):
        for name in group.node_names():
            if name in taken:
                raise FleetError(f"nodes[{number}].name: a second node would be named {name}")
            taken.add(name)
    return Fleet(groups, _autoscaler(given.get("autoscaler")))


def _autoscaler(data: object) -> ClusterAutoscaler | Karpenter | None:
    if data is None:
        return None
    where = "autoscaler"
    name = fields.mapping(where, data).get("name")
    return _AUTOSCALERS[fields.one_of(f"{where}.name", name, tuple(_AUTOSCALERS))](where, data)


def _group(where: str, data: object) -> NodeGroup:
    given = fields.fields(
        where,
        data,
        required=("name", "count", "allocatable"),
        optional=("labels", "taints", "scaling"),
    )
    scaling = given.get("scaling")
    return NodeGroup(
        name=fields.name(f"{where}.name", given["name"]),
        count=fields.whole_number(f"{where}.count", given["count"], LARGEST),
        allocatable=_allocatable(f"{where}.allocatable", given["allocatable"]),
        labels=fields.labels(f"{where}.labels", given.get("labels", {})),
        taints=parse_taints(f"{where}.taints", given.get("taints", [])),
        scaling=None if scaling is None else parse_scaling(f"{where}.scaling", scaling),
    )


def _allocatable(where: str, data: object) -> dict[str, str]:
    quantities = fields.quantities(where, data)
    for resource in ("cpu", "memory", "pods"):
        if resource not in quantities:
            raise FleetError(f"{where}.{resource}: missing; without it no pod fits the node")
    return quantities
