"""Indexes claims, volumes and all other objects except nodes and pods."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from gpuspawner.kube.nodes import DeviceClass
from gpuspawner.kube.objects import CLUSTER_SCOPED, KINDS, KubeObject
from gpuspawner.kube.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
)

from .csi_migration import migrated_plugins
from .requests import IMPLICIT_DEVICE_CLASS

T = TypeVar("T", bound=KubeObject)
G = TypeVar("G")
V = TypeVar("V")

_NO_LIMITS: Mapping[str, int] = {}

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"


def object_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of an object among those of its kind."""
    return name if kind in CLUSTER_SCOPED else f"{namespace}/{name}"


def drop_from(groups: dict[G, dict[str, V]], group: G, key: str) -> None:
    """Drop an entry of a group, if there is one, and the group if it has no others."""
    its = groups.get(group, {})
    its.pop(key, None)
    if not its:
        groups.pop(group, None)


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of a volume, "" for none (`GetPersistentVolumeClass`)."""
    annotations = volume.metadata.annotations or {}
    return annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim, "" for none (`GetPersistentVolumeClaimClass`)."""
    annotations = claim.metadata.annotations or {}
    return annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


class StorageIndex:
    """All objects except nodes and pods."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, KubeObject]] = {
            kind: {} for kind in KINDS if kind not in ("Node", "Pod")
        }
        self._open: dict[str, dict[str, PersistentVolume]] = {}
        """Volumes that don't name a claim, by storage class."""
        self._reserved: dict[str, dict[str, PersistentVolume]] = {}
        """Volumes that name a claim, by namespace/name of the claim."""
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        """Attachments by node."""
        self._limits: dict[str, dict[str, int]] = {}
        """For each node, the maximum number of volumes of each driver."""

    def get(self, type_: type[T], name: str, namespace: str = "") -> T | None:
        """Return an object by its type and name."""
        kind = type_.__name__
        found = self._kinds[kind].get(object_key(kind, namespace, name))
        return found if isinstance(found, type_) else None

    def all(self, type_: type[T]) -> list[T]:
        """Return all objects of a type."""
        return [thing for thing in self._kinds[type_.__name__].values() if isinstance(thing, type_)]

    def of_kind(self, kind: str) -> Mapping[str, KubeObject]:
        """Return all objects of a kind by key."""
        return MappingProxyType(self._kinds[kind])

    def open_volumes(self, storage_class: str) -> list[PersistentVolume]:
        """Return the volumes of a class that don't name a claim."""
        return list(self._open.get(storage_class, {}).values())

    def reserved_volumes(self, namespace: str, claim: str) -> list[PersistentVolume]:
        """Return the volumes that name a claim."""
        return list(self._reserved.get(f"{namespace}/{claim}", {}).values())

    def attachments(self, node: str) -> Mapping[str, VolumeAttachment]:
        """Return the VolumeAttachments of a node, by name."""
        return self._attachments.get(node, {})

    def volume_limits(self, node: str) -> Mapping[str, int]:
        """Return a node's limit for each CSI driver; a driver without an entry has no limit."""
        return self._limits.get(node, _NO_LIMITS)

    def migrated_plugins(self, node: str) -> frozenset[str]:
        """Return the in-tree plugins that a node serves through CSI."""
        known = self.get(CSINode, node)
        return migrated_plugins(known.metadata.annotations) if known else frozenset()

    @property
    def device_resources(self) -> frozenset[str]:
        """The resources that device classes serve."""
        classes = self.all(DeviceClass)
        implicit = (IMPLICIT_DEVICE_CLASS + c.metadata.name for c in classes)
        return frozenset(filter(None, (c.spec.extended_resource_name for c in classes))).union(
            implicit
        )

    def put(self, kind: str, thing: KubeObject) -> None:
        """Store the newest version of an object."""
        key = object_key(kind, thing.metadata.namespace, thing.metadata.name)
        self.discard(kind, key)
        self._kinds[kind][key] = thing
        if isinstance(thing, PersistentVolume):
            groups, group = self._group_of(thing)
            groups.setdefault(group, {})[key] = thing
        elif isinstance(thing, VolumeAttachment):
            self._attachments.setdefault(thing.spec.node_name, {})[key] = thing
        elif isinstance(thing, CSINode):
            self._limits[key] = {
                driver.name: driver.allocatable.count
                for driver in thing.spec.drivers or ()
                if driver.allocatable is not None and driver.allocatable.count is not None
            }

    def discard(self, kind: str, key: str) -> bool:
        """Drop an object; return whether it existed."""
        thing = self._kinds[kind].pop(key, None)
        if isinstance(thing, PersistentVolume):
            drop_from(*self._group_of(thing), key)
        elif isinstance(thing, VolumeAttachment):
            drop_from(self._attachments, thing.spec.node_name, key)
        elif isinstance(thing, CSINode):
            del self._limits[key]
        return thing is not None

    def _group_of(
        self, volume: PersistentVolume
    ) -> tuple[dict[str, dict[str, PersistentVolume]], str]:
        claim = volume.spec.claim_ref
        if claim is None:
            return self._open, class_of_volume(volume)
        return self._reserved, f"{claim.namespace}/{claim.name}"
