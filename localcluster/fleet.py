"""Fleets: the nodes of a local cluster, and the file format that describes them.

The file is YAML with one key, ``nodes``, a list of groups of identical nodes::

    nodes:
      - name: t4
        count: 2
        labels: {cloud.google.com/gke-accelerator: nvidia-tesla-t4}
        taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
        allocatable: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}

gives the nodes t4-0 and t4-1. ``labels`` and ``taints`` may be left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from localcluster.errors import LocalClusterError

FLEETS = Path(__file__).parent / "fleets"
#: Kubernetes supports up to this many nodes.
LARGEST = 5000
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED_NAME = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")


class FleetError(LocalClusterError):
    """An invalid fleet; the text names the field and its allowed values."""


@dataclass(frozen=True)
class Taint:
    """A taint as the Kubernetes API has it; effect is one of `EFFECTS`."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class NodeGroup:
    """``count`` identical nodes, named ``name-0``, ``name-1`` and so on."""

    name: str
    count: int
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    def node_names(self) -> Iterator[str]:
        """Yield the name of each node of the group."""
        return (f"{self.name}-{number}" for number in range(self.count))


@dataclass(frozen=True)
class Fleet:
    """All nodes of a cluster, in groups of identical ones."""

    groups: tuple[NodeGroup, ...] = ()

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
    items = _fields("fleet", data, required=("nodes",))["nodes"]
    groups = tuple(
        _group(f"nodes[{number}]", item) for number, item in enumerate(_list("nodes", items))
    )
    taken: set[str] = set()
    for number, group in enumerate(groups):
        for name in group.node_names():
            if name in taken:
                raise FleetError(f"nodes[{number}].name: a second node would be named {name}")
            taken.add(name)
    return Fleet(groups)


def _group(where: str, data: object) -> NodeGroup:
    fields = _fields(
        where, data, required=("name", "count", "allocatable"), optional=("labels", "taints")
    )
    name, count = fields["name"], fields["count"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FleetError(f"{where}.name: {name!r} is not lower case letters, digits and dashes")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= LARGEST:
        raise FleetError(f"{where}.count: {count!r} is not a whole number from 0 to {LARGEST}")
    taints = _list(f"{where}.taints", fields.get("taints", []))
    return NodeGroup(
        name=name,
        count=count,
        allocatable=_allocatable(f"{where}.allocatable", fields["allocatable"]),
        labels=_labels(f"{where}.labels", fields.get("labels", {})),
        taints=tuple(_taint(f"{where}.taints[{i}]", taint) for i, taint in enumerate(taints)),
    )


def _allocatable(where: str, data: object) -> dict[str, str]:
    quantities: dict[str, str] = {}
    for resource, quantity in _mapping(where, data).items():
        _qualified_name(where, resource)
        # YAML reads an unquoted 8 as a number; it means the same.
        is_number = isinstance(quantity, int | float) and not isinstance(quantity, bool)
        text = str(quantity) if is_number else quantity
        if not isinstance(text, str) or not _QUANTITY.fullmatch(text):
            raise FleetError(
                f"{where}.{resource}: {quantity!r} is not a quantity such as 8, 500m or 32Gi"
            )
        quantities[resource] = text
    for resource in ("cpu", "memory", "pods"):
        if resource not in quantities:
            raise FleetError(f"{where}.{resource}: missing; without it no pod fits the node")
    return quantities


def _labels(where: str, data: object) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in _mapping(where, data).items():
        _qualified_name(where, key)
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            raise FleetError(f"{where}.{key}: {value!r} is not a label value (quote true and 1)")
        labels[key] = value
    return labels


def _taint(where: str, data: object) -> Taint:
    fields = _fields(where, data, required=("key", "effect"), optional=("value",))
    key, value, effect = fields["key"], fields.get("value", ""), fields["effect"]
    if not isinstance(key, str):
        raise FleetError(f"{where}.key: {key!r} is not text")
    _qualified_name(f"{where}.key", key)
    if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
        raise FleetError(f"{where}.value: {value!r} is not a taint value (quote true and 1)")
    if not isinstance(effect, str) or effect not in EFFECTS:
        raise FleetError(f"{where}.effect: {effect!r} is not one of {', '.join(EFFECTS)}")
    return Taint(key, value, effect)


def _qualified_name(where: str, name: str) -> None:
    if not _QUALIFIED_NAME.fullmatch(name):
        raise FleetError(f"{where}: {name!r} is not a name such as example.com/name")


def _fields(
    where: str, data: object, *, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, object]:
    fields = _mapping(where, data)
    allowed = required + optional
    for name in fields:
        if name not in allowed:
            raise FleetError(f"{where}.{name}: unknown; it may have {', '.join(allowed)}")
    for name in required:
        if name not in fields:
            raise FleetError(f"{where}.{name}: missing")
    return fields


def _mapping(where: str, data: object) -> dict[str, object]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise FleetError(f"{where}: {data!r} is not a mapping with text as keys")
    return data


def _list(where: str, data: object) -> list[object]:
    if not isinstance(data, list):
        raise FleetError(f"{where}: {data!r} is not a list")
    return data
