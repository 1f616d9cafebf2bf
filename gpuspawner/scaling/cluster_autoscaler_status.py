"""Parses the status that Cluster Autoscaler writes to its ConfigMap.

It is YAML since 1.30 (``clusterstate/api/types.go``). It lists the node groups, but neither their
labels nor their resources. Earlier versions write a text for people, which says nothing here.
"""

import re
from datetime import UTC, datetime, timedelta

import msgspec
import yaml

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Some 400 groups, parsed in a tenth of a second. The autoscaler cuts a status of 1 MB, and
# then some groups are missing.
_LONGEST = 400_000
_DEEPEST = 20
_NULLS = ("", "~", "null")

# As Go prints a time.
_WRITTEN = re.compile(
    r"^time: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})", re.MULTILINE
)

# It writes its status every ten seconds, but its clock and the hub's may differ.
_OLD = timedelta(minutes=15)

_IDLE = re.compile(
    r"^autoscalerStatus: Initializing|^clusterWide:\s+health:\s+status: Unhealthy", re.MULTILINE
)


class _Registered(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes have joined, with those that are being deleted."""

    total: int = 0
    being_deleted: int = 0


class _NodeCounts(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes there are of each kind.

    Attributes:
        long_unregistered: Those that haven't joined in the time that the autoscaler gives a node
            (``--max-node-provision-time``): it expects them no longer.
    """

    registered: _Registered = _Registered()
    long_unregistered: int = 0


class _Health(msgspec.Struct, frozen=True, rename="camel"):
    """The size of a node group.

    Attributes:
        cloud_provider_target: How many nodes it is to have, without those that are being deleted.
        status: If it is `Unhealthy`, the autoscaler adds no node for now.
    """

    cloud_provider_target: int
    max_size: int
    status: str = ""
    node_counts: _NodeCounts = _NodeCounts()


class _BackOff(msgspec.Struct, frozen=True, rename="camel"):
    """Why the provider couldn't deliver."""

    error_code: str = ""
    error_message: str = ""


class _ScaleUp(msgspec.Struct, frozen=True, rename="camel"):
    """What the autoscaler does. If the provider couldn't deliver, it waits (`Backoff`)."""

    status: str = ""
    backoff_info: _BackOff = _BackOff()


class NodeGroup(msgspec.Struct, frozen=True, rename="camel"):
    """One node group."""

    name: str
    health: _Health
    scale_up: _ScaleUp = _ScaleUp()


class _Status(msgspec.Struct, rename="camel"):
    autoscaler_status: str = ""
    node_groups: list[NodeGroup] | None = None


def node_groups(status: str) -> tuple[NodeGroup, ...] | None:
    """Return the node groups of a status; None if it can't be read."""
    if len(status) > _LONGEST:
        return None
    try:
        read = msgspec.convert(_read(status), _Status, strict=False)
    except (yaml.YAMLError, ValueError, TypeError):
        return None
    if not read.autoscaler_status:
        return None
    return tuple(read.node_groups or ())


def written(status: str) -> datetime | None:
    """Return when the autoscaler wrote a status; None if it doesn't say."""
    found = _WRITTEN.search(status)
    if found is None:
        return None
    try:
        return datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S %z")
    except ValueError:
        return None


def is_old(moment: datetime) -> bool:
    """Whether a status was written so long ago that the autoscaler doesn't run any more."""
    return datetime.now(UTC) - moment > _OLD


def is_after_a_look(status: str) -> bool:
    """Whether the autoscaler has looked at pods before it wrote this.

    It doesn't while it starts, nor while too many nodes of the cluster aren't ready.
    """
    return _IDLE.search(status) is None


def _read(status: str) -> object:
    """Return what a YAML text says, with all its scalars as texts.

    A loader would follow aliases endlessly, end the process if values are nested too deeply, and
    raise anything for tags. Go writes none of these.

    Raises:
        YAMLError, ValueError, TypeError: It isn't YAML that Go writes.
    """
    opened: list[list[object]] = [[]]
    for event in yaml.parse(status, Loader=_Loader):
        match event:
            case yaml.ScalarEvent():
                is_null = event.implicit[0] and event.value in _NULLS
                opened[-1].append(None if is_null else event.value)
            case yaml.AliasEvent():
                raise ValueError("an alias")
            case yaml.CollectionStartEvent():
                if len(opened) > _DEEPEST:
                    raise ValueError("nested too deeply")
                opened.append([])
            case yaml.SequenceEndEvent():
                items = opened.pop()
                opened[-1].append(items)
            case yaml.MappingEndEvent():
                items = opened.pop()
                opened[-1].append(dict(zip(items[::2], items[1::2], strict=True)))
    return opened[0][0] if opened[0] else None
