"""Volumes to which a claim could be bound, and the space to provision a new one.

Sources: `FindMatchingVolume` in component-helpers `storage/volume/pv_helpers.go` (v0.36.2),
`hasEnoughCapacity` in volumebinding/binder.go, `MatchTopologySelectorTerms` in
pkg/apis/core/v1/helper (v1.36.2).
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Generic, TypeVar

import msgspec

from gpuspawner.kube.meta import LabelSelector, Quantities
from gpuspawner.kube.quantity import NANOS, QuantityError, parse_nanos
from gpuspawner.kube.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
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
from .storage_index import StorageIndex, class_of_claim, class_of_volume

_STAYING = {"ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "pd.csi.storage.gke.io"}
"""Provisioners of volumes that only nodes in their zones reach."""

_FILES = "Filesystem"
"""The mode of a volume, and of a claim, that names none."""

_T = TypeVar("_T")


class ByLabel(Generic[_T]):
    """Things in an order, each with the selector of the nodes that have it.

    A cluster with storage on its nodes has a volume or a capacity for each of them. To try all of
    these on all nodes would hold up the hub, but most require one value of a label.
    """

    def __init__(self, things: Iterable[tuple[Selector, _T]] = ()) -> None:
        self._things: dict[tuple[str, str] | None, list[tuple[int, _T]]] = {}
        for number, (selector, thing) in enumerate(things):
            self._things.setdefault(_required(selector), []).append((number, thing))
        self._keys = {value[0] for value in self._things if value is not None}

    def __len__(self) -> int:
        return sum(map(len, self._things.values()))

    def near(self, labels: Labels) -> Iterator[_T]:
        """Yield in their order all things whose selectors match the labels, and a few others."""
        values = (None, *((key, labels[key]) for key in self._keys if key in labels))
        found = (self._things.get(value, ()) for value in values)
        return (thing for _, thing in heapq.merge(*found, key=itemgetter(0)))


def _required(selector: Selector) -> tuple[str, str] | None:
    """Return a label without which a selector matches nothing; None if it names no such label."""
    for it in selector.requirements:
        if it.operator == "In" and len(it.values) == 1:
            return it.key, next(iter(it.values))
    return None


class Reach(msgspec.Struct, frozen=True):
    """The nodes that can reach a volume."""

    volume: PersistentVolume
    terms: tuple[NodeTerm, ...] | None
    """None means all nodes."""

    def reaches(self, labels: Labels) -> bool:
        """Return whether a node with these labels can reach the volume."""
        # The scheduler checks only the labels here, and ignores matchFields.
        return self.terms is None or any(term.labels.matches(labels) for term in self.terms)

    @property
    def selector(self) -> Selector:
        """A selector that matches at least these nodes."""
        return self.terms[0].labels if self.terms and len(self.terms) == 1 else EVERYTHING


def reach_of(volume: PersistentVolume) -> Reach:
    """Compile a volume's node affinity."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    return Reach(volume, compile_node_selector(required) if required is not None else None)


class Candidates(msgspec.Struct, frozen=True):
    """The volumes that could serve a claim."""

    reserved: tuple[Reach, ...]
    """Volumes that name the claim; the first one decides."""
    smallest_first: ByLabel[Reach]

    def pick(self, labels: Labels, chosen: set[str]) -> str | None:
        """Return the name of the volume that the scheduler would take on a node, if any.

        `chosen` are the volumes that other claims of the pod take.
        """
        for reach in self.reserved:
            name = reach.volume.metadata.name
            if name not in chosen:
                return name if reach.reaches(labels) else None
        for reach in self.smallest_first.near(labels):
            name = reach.volume.metadata.name
            if name not in chosen and reach.reaches(labels):
                return name
        return None

    @property
    def anywhere(self) -> bool:
        """Whether the claim takes a volume that is there, and every node reaches any of them."""
        free = [it for it in self.smallest_first.near({}) if it.terms is None]
        return bool(self.reserved) or 0 < len(free) == len(self.smallest_first)

    def free_for(self, nodes: Iterable[Labels]) -> frozenset[str]:
        """Return the names of the volumes that no claim has reserved and one of the nodes reaches.

        Args:
            nodes: The labels of each.
        """
        found: set[str] = set()
        everything = len(self.smallest_first)
        for labels in nodes:
            near = self.smallest_first.near(labels)
            found.update(it.volume.metadata.name for it in near if it.reaches(labels))
            if len(found) == everything:  # volumes of the network: the first node reaches all
                break
        return frozenset(found)


def candidates(claim: PersistentVolumeClaim, storage: StorageIndex) -> Candidates:
    """Return the volumes that could serve an unbound claim."""
    size = size_of(claim)
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
    smallest_first = ByLabel((it.selector, it) for it in map(reach_of, free))
    return Candidates(tuple(map(reach_of, reserved_for(claim, storage))), smallest_first)


def reserved_for(claim: PersistentVolumeClaim, storage: StorageIndex) -> list[PersistentVolume]:
    """Return the volumes that name an unbound claim and suit it; the first one decides."""
    size = size_of(claim)
    return [
        volume
        for volume in storage.reserved_volumes(claim.metadata.namespace, claim.metadata.name)
        if class_of_volume(volume) == class_of_claim(claim)
        and _names(volume, claim)
        and _suits(volume, claim, size)
    ]


def what_suits(claim: PersistentVolumeClaim, storage: StorageIndex) -> tuple[object, ...]:
    """Return what decides where an unbound claim gets a volume: a present one, or one to make.

    Equal for two users' homes that are alike. `candidates` and `capacities` read it.
    """
    spec = claim.spec
    return (
        class_of_claim(claim),
        str(size_of(claim)),  # it may have more than 64 bits
        sorted(spec.access_modes or ()),
        spec.volume_mode or _FILES,
        spec.volume_attributes_class_name or "",
        spec.selector,
        [it.spec.node_affinity for it in reserved_for(claim, storage)],
    )


def _names(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid in ("", claim.metadata.uid)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, size: int) -> bool:
    return (
        _storage_of(volume.spec.capacity) >= size
        and (volume.spec.volume_mode or _FILES) == (claim.spec.volume_mode or _FILES)
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def capacities(
    claim: PersistentVolumeClaim, class_: StorageClass, storage: StorageIndex
) -> ByLabel[Selector] | None:
    """Return selectors of nodes with enough space for a claim; None if space doesn't matter."""
    requests = claim.spec.resources.requests if claim.spec.resources else None
    if not requests or "storage" not in requests:
        return None
    driver = storage.get(CSIDriver, class_.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    size = _bytes(size_of(claim))
    selectors = []
    for capacity in storage.all(CSIStorageCapacity):
        limit = capacity.maximum_volume_size
        if limit is None:
            limit = capacity.capacity
        if capacity.storage_class_name != class_.metadata.name or limit is None:
            continue
        if capacity.node_topology is None or _bytes(_storage_of({"storage": limit})) < size:
            continue
        with suppress(SelectorError):
            selectors.append(compile_selector(capacity.node_topology))
    return ByLabel((it, it) for it in selectors)


def made_in(claim: PersistentVolumeClaim, storage: StorageIndex) -> list[TopologySelectorTerm]:
    """Return the places of which one gets the volume that is made for a claim before any pod.

    Empty if nobody knows: a volume that is there already, or that the claim names, may be taken
    instead.
    """
    class_ = storage.get(StorageClass, class_of_claim(claim))
    places = places_of(class_) if class_ is not None and not claim.spec.volume_name else []
    present = candidates(claim, storage) if places else Candidates((), ByLabel())
    return [] if present.reserved or present.smallest_first else places


def places_of(class_: StorageClass) -> list[TopologySelectorTerm]:
    """Return the places in which a class makes volumes that only their nodes reach, if known.

    By CSI, a volume has to be reached from one of the allowed topologies, so others may reach it
    too: volumes of Filestore, and Azure's zone-redundant disks. And not each driver reads them.
    """
    places = class_.allowed_topologies or []
    is_known = class_.provisioner in _STAYING and all(it.match_label_expressions for it in places)
    return places if is_known else []


def is_one_zone(places: Sequence[TopologySelectorTerm]) -> bool:
    """Whether a volume in these places is in one zone or on one node; a region may have several."""
    labels = [label for it in places for label in it.match_label_expressions or ()]
    is_small = any(it.key.endswith(("/zone", "/hostname")) for it in labels)
    return len(places) == 1 and is_small and all(len(it.values or ()) == 1 for it in labels)


def topology_terms(terms: Iterable[TopologySelectorTerm] | None) -> tuple[Selector, ...] | None:
    """Compile terms; one of them must match. None means no terms, so everything matches."""
    if not terms:
        return None
    compiled = []
    for term in terms:
        if not term.match_label_expressions:
            continue
        expressions = tuple(
            msgspec.structs.replace(it, operator="In") for it in term.match_label_expressions
        )
        with suppress(SelectorError):
            compiled.append(compile_selector(LabelSelector(match_expressions=expressions)))
    return tuple(compiled)


def matches_any(terms: Iterable[Selector] | None, labels: Labels) -> bool:
    """Return whether one of the terms, if there are any, matches a node with these labels."""
    return terms is None or any(term.matches(labels) for term in terms)


def size_of(claim: PersistentVolumeClaim) -> int:
    """Return the requested size of a claim, in billionths of a byte."""
    return _storage_of(claim.spec.resources.requests if claim.spec.resources else None)


def _storage_of(quantities: Quantities | None) -> int:
    """Return the `storage` in billionths of a byte; 0 if it can't be parsed."""
    try:
        return parse_nanos(str((quantities or {}).get("storage", "0")))
    except QuantityError:
        return 0


def _bytes(nanos: int) -> int:
    """Round up to whole bytes, because the scheduler compares whole bytes."""
    return -(-nanos // NANOS)
