"""Structs that Kubernetes' objects share: metadata, selectors, conditions, amounts and disks.

Python's garbage collector ignores these structs (gc=False): with 150,000 of them, every full
collection would cause a noticeable pause, and none is part of a cycle. As in the API, null means an
absent list or mapping.
"""

from datetime import UTC, datetime

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]

Key = tuple[str, str]
"""Namespace and name of an object, usually a pod; the namespace of a cluster-wide one is ""."""


class KubeStruct(msgspec.Struct, gc=False, frozen=True, rename="camel", omit_defaults=True):
    """Base class of all structs: frozen, camelCase names in JSON, defaults omitted."""


class OwnerReference(KubeStruct, frozen=True):
    """The owner of an object, such as a DaemonSet."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class BareMeta(KubeStruct, frozen=True):
    """The metadata of every object, without annotations."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return self.namespace, self.name


class ObjectMeta(BareMeta, frozen=True):
    """The metadata of every object."""

    annotations: dict[str, str] | None = None


class LabelSelectorRequirement(KubeStruct, frozen=True):
    """One item of `matchExpressions` in a label selector, node selector or topology selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(KubeStruct, frozen=True):
    """Labels and expressions that must all match; an empty selector matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorTerm(KubeStruct, frozen=True):
    """Expressions and fields that must all match; an empty term matches nothing."""

    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    match_fields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(KubeStruct, frozen=True):
    """Terms; at least one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class Condition(KubeStruct, frozen=True):
    """A condition of a node or a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ResourceRequirements(KubeStruct, frozen=True):
    """Requests and limits of a container or of a whole pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


# Volumes that pods and PersistentVolumes describe in the same way.


class CSISource(KubeStruct, frozen=True):
    """A CSI volume, inline or of a PersistentVolume."""

    driver: str = ""
    volume_handle: str = ""


class GCEPersistentDisk(KubeStruct, frozen=True):
    """An in-tree volume."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(KubeStruct, frozen=True):
    """An in-tree volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(KubeStruct, frozen=True):
    """An in-tree volume."""

    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class Cinder(KubeStruct, frozen=True):
    """An in-tree volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSI(KubeStruct, frozen=True):
    """An in-tree volume."""

    iqn: str = ""
    read_only: bool = False


class RBD(KubeStruct, frozen=True):
    """An in-tree volume."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


# The API's times: RFC 3339, in UTC.


def moment(text: str | None) -> datetime | None:
    """Parse a time; return None if there is none, or if it can't be read."""
    try:
        at = datetime.fromisoformat(text or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
