"""Volumes and nodes: plugins VolumeBinding and VolumeZone.

Sources: volumebinding/binder.go, volumezone/volume_zone.go (v1.36.2), component-helpers
`storage/volume/pv_helpers.go` (v0.36.2).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from gpuspawner.kube.meta import Quantities
from gpuspawner.kube.quantity import QuantityError, parse_nanos
from gpuspawner.kube.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

from .claims import NO_PROVISIONER, PodClaims
from .failures import (
    Failure,
    Failures,
    NoStorage,
    NoVolume,
    OtherZone,
    VolumeElsewhere,
    VolumeGone,
)
from .labels import (
    EVERYTHING,
    Labels,
    NodeTerm,
    Selector,
    SelectorError,
    compile_node_selector,
    compile_selector,
)
from .node_info import NodeInfo
from .storage_index import StorageIndex, class_of_claim, class_of_volume
from .topology_terms import matches_any, topology_terms

SELECTED_NODE = "volume.kubernetes.io/selected-node"

ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels of zones, each with its name today."""


@dataclass(frozen=True, slots=True)
class _Reach:
    """Which nodes reach a volume."""

    volume: PersistentVolume
    terms: tuple[NodeTerm, ...] | None

    def reaches(self, labels: Labels) -> bool:
        # The scheduler looks at the labels alone here: fields are left out, not mismatched.
        return self.terms is None or any(term.labels.matches(labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class _Zone:
    volume: str
    label: str
    zones: frozenset[str]


class Binding:
    """How the claims of a pod could be served on each node."""

    def __init__(self, claims: PodClaims, storage: StorageIndex) -> None:
        self._claims = claims
        self._storage = storage
        self._bound = [
            (bound.claim.metadata.name, _reach(bound.volume) if bound.volume else None)
            for bound in claims.bound
        ]
        self._zones = [
            zone
            for bound in claims.bound
            if bound.volume is not None and not bound.ephemeral
            for zone in _zones(bound.volume)
        ]

    def failures(self, node: NodeInfo) -> Failures:
        """Return what VolumeBinding has against a node."""
        bound: Failure | None = None
        for claim, reach in self._bound:
            if reach is None:
                bound = VolumeGone(claim)
                break
            if not reach.reaches(node.labels):
                bound = VolumeElsewhere(claim, reach.volume.metadata.name)
                break
        unserved = self._unserved(node) if self._claims.waiting else None
        if bound is None:
            return () if unserved is None else (unserved,)
        return (bound,) if unserved is None else (bound, unserved)

    def zone_failure(self, node: NodeInfo) -> Failure | None:
        """Return what VolumeZone has against a node."""
        labels = node.labels
        if not self._zones or not any(label in labels for label in ZONE_LABELS):
            return None
        for zone in self._zones:
            value = labels.get(zone.label)
            if value is None:
                value = labels.get(ZONE_LABELS[zone.label])
            if value is None or value not in zone.zones:
                return OtherZone(zone.volume, zone.label, tuple(sorted(zone.zones)))
        return None

    def _unserved(self, node: NodeInfo) -> Failure | None:
        to_find: list[PersistentVolumeClaim] = []
        to_make: list[PersistentVolumeClaim] = []
        for claim in self._claims.waiting:
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                to_find.append(claim)
            elif selected != node.name:
                return NoVolume(claim.metadata.name)
            else:
                to_make.append(claim)
        chosen: set[str] = set()
        for claim in sorted(to_find, key=_size):
            volume = self._volumes[claim.metadata.name].pick(node.labels, chosen)
            if volume is None:
                to_make.append(claim)
            else:
                chosen.add(volume)
        for claim in to_make:
            fact = self._cannot_make(claim, node.labels)
            if fact is not None:
                return fact
        return None

    @cached_property
    def _volumes(self) -> dict[str, "_Candidates"]:
        return {
            claim.metadata.name: _candidates(claim, self._storage) for claim in self._claims.waiting
        }

    @cached_property
    def _classes(self) -> dict[str, StorageClass | None]:
        return {
            claim.metadata.name: self._storage.get(StorageClass, class_of_claim(claim))
            for claim in self._claims.waiting
        }

    @cached_property
    def _topologies(self) -> dict[str, tuple[Selector, ...] | None]:
        return {
            name: topology_terms(class_.allowed_topologies) if class_ else None
            for name, class_ in self._classes.items()
        }

    @cached_property
    def _capacities(self) -> dict[str, list[Selector] | None]:
        return {
            claim.metadata.name: _capacities(
                claim, self._classes[claim.metadata.name], self._storage
            )
            for claim in self._claims.waiting
        }

    def _cannot_make(self, claim: PersistentVolumeClaim, labels: Labels) -> Failure | None:
        name = claim.metadata.name
        class_ = self._classes[name]
        if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
            return NoVolume(name)
        if not matches_any(self._topologies[name], labels):
            return NoVolume(name)
        capacities = self._capacities[name]
        if capacities is not None and not any(c.matches(labels) for c in capacities):
            return NoStorage(name)
        return None


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Volumes that could serve a claim, on nodes that reach them."""

    reserved: tuple[_Reach, ...]
    """Those that name the claim: the first decides."""
    smallest_first: tuple[_Reach, ...]

    def pick(self, labels: Labels, chosen: set[str]) -> str | None:
        for reach in self.reserved:
            name = reach.volume.metadata.name
            if name not in chosen:
                return name if reach.reaches(labels) else None
        for reach in self.smallest_first:
            name = reach.volume.metadata.name
            if name not in chosen and reach.reaches(labels):
                return name
        return None


def _candidates(claim: PersistentVolumeClaim, storage: StorageIndex) -> _Candidates:
    size = _size(claim)
    reserved = [
        volume
        for volume in storage.reserved_volumes(claim.metadata.namespace, claim.metadata.name)
        if class_of_volume(volume) == class_of_claim(claim)
        and _names(volume, claim)
        and _suits(volume, claim, size)
    ]
    try:
        selector = compile_selector(claim.spec.selector) if claim.spec.selector else EVERYTHING
    except SelectorError:
        selector = EVERYTHING._replace(nothing=True)
    modes = set(claim.spec.access_modes or ())
    free = [
        volume
        for volume in storage.open_volumes(class_of_claim(claim))
        if volume.status.phase == "Available"
        and _suits(volume, claim, size)
        and selector.matches(volume.metadata.labels or {})
        and modes.issubset(volume.spec.access_modes or ())
    ]
    free.sort(key=lambda volume: _storage_of(volume.spec.capacity))
    return _Candidates(tuple(map(_reach, reserved)), tuple(map(_reach, free)))


def _names(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid in ("", claim.metadata.uid)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, size: int) -> bool:
    return (
        _storage_of(volume.spec.capacity) >= size
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _capacities(
    claim: PersistentVolumeClaim, class_: StorageClass | None, storage: StorageIndex
) -> list[Selector] | None:
    """Return the parts of the cluster with enough space for a claim; None if space is no matter."""
    requests = claim.spec.resources.requests if claim.spec.resources else None
    if class_ is None or not requests or "storage" not in requests:
        return None
    driver = storage.get(CSIDriver, class_.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    size = _size(claim)
    selectors = []
    for capacity in storage.all(CSIStorageCapacity):
        limit = capacity.maximum_volume_size
        if limit is None:
            limit = capacity.capacity
        if capacity.storage_class_name != class_.metadata.name or limit is None:
            continue
        if capacity.node_topology is None or _storage_of({"storage": limit}) < size:
            continue
        try:
            selectors.append(compile_selector(capacity.node_topology))
        except SelectorError:
            continue
    return selectors


def _reach(volume: PersistentVolume) -> _Reach:
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    return _Reach(volume, compile_node_selector(required) if required is not None else None)


def _zones(volume: PersistentVolume) -> Iterable[_Zone]:
    labels = volume.metadata.labels or {}
    for label in ZONE_LABELS:
        value = labels.get(label)
        if value is None:
            continue
        zones = [zone.strip() for zone in value.split("__")]
        if all(zones):  # an empty zone makes the scheduler skip the label
            yield _Zone(volume.metadata.name, label, frozenset(zones))


def _size(claim: PersistentVolumeClaim) -> int:
    return _storage_of(claim.spec.resources.requests if claim.spec.resources else None)


def _storage_of(quantities: Quantities | None) -> int:
    """Return a size in billionths of a byte; what cannot be read counts as nothing."""
    try:
        return parse_nanos(str((quantities or {}).get("storage", "0")))
    except QuantityError:
        return 0
