"""Which nodes can use a pod's volumes: plugins VolumeBinding and VolumeZone.

Sources: volumebinding/binder.go, volumezone/volume_zone.go (v1.36.2).
"""

from collections.abc import Iterable
from functools import cached_property

import msgspec

from gpuspawner.kube.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)

from .csi_migration import ZONE_LABELS, plugin_of, translated, translates
from .failures import Failure, Failures, NoStorage, NoVolume, OtherZone, VolumeElsewhere, VolumeGone
from .labels import Labels, Selector
from .node_info import NodeInfo
from .pod_claims import NO_PROVISIONER, PodClaims, selected_node
from .static_filters import Screening
from .storage_index import StorageIndex, class_of_claim
from .volume_candidates import (
    ByLabel,
    Candidates,
    Reach,
    candidates,
    capacities,
    is_one_zone,
    made_in,
    matches_any,
    reach_of,
    size_of,
    topology_terms,
)

_Places = tuple[tuple[Selector, ...] | None, ByLabel[Selector] | None]
"""The topologies that a class allows, and those with enough space; None for any."""


class Binding:
    """Checks whether a node can serve the claims of a pod."""

    def __init__(self, claims: PodClaims, storage: StorageIndex, screening: Screening) -> None:
        self._claims = claims
        self._storage = storage
        self.migrating = {
            bound.volume.metadata.name: (plugin, reach_of(translated(bound.volume)))
            for bound in claims.bound
            if bound.volume is not None and (plugin := plugin_of(bound.volume.spec)) is not None
        }
        """In-tree volumes, each with its plugin and its reach on nodes that migrated the plugin.

        With some, the migrated plugins of nodes can change the result.
        """
        names = [(it.metadata.name, it) for it in claims.provisioning]
        made = {it: [] if it in claims.ephemeral else made_in(its, storage) for it, its in names}
        self._made = {name: topology_terms(places) for name, places in made.items()}
        """Where the volumes can be that are made before the pod; None if that is anywhere."""
        self.unplaced = [name for name, places in made.items() if not is_one_zone(places)]
        """Names of claims whose volumes are made before the pod, and not in one known zone."""
        # A change of a node's migrated plugins doesn't clear kept results, so keep none for these.
        self._reaching: set[str] = (
            set() if self.migrating else screening.kept(_signature(claims, made.values()), set)
        )
        """Nodes that can reach all volumes of bound and of new claims, as far as checked."""
        self._bound = [
            (bound.claim.metadata.name, reach_of(bound.volume) if bound.volume else None)
            for bound in claims.bound
        ]
        self._zones = [
            zone
            for bound in claims.bound
            if bound.volume is not None and not bound.ephemeral
            for zone in _zones(bound.volume)
        ]

    def failures(self, node: NodeInfo) -> Failures:
        """Return the failures of VolumeBinding on a node, or else those of VolumeZone."""
        bound = None if node.name in self._reaching else self._unreached(node)
        unserved = self._unserved(node) if self._claims.waiting else None
        failures = tuple(fact for fact in (bound, unserved) if fact is not None)
        if failures or node.name in self._reaching:
            return failures
        if self._is_in_other_zone(node.labels):
            return (OtherZone(),)
        self._reaching.add(node.name)
        return ()

    def _unreached(self, node: NodeInfo) -> Failure | None:
        for claim, reach in self._bound:
            if reach is None:
                return VolumeGone()
            if not self._as_seen_by(node, reach).reaches(node.labels):
                return VolumeElsewhere(claim, reach.volume.metadata.name)
        for claim, terms in self._made.items():
            if not matches_any(terms, node.labels):
                return NoVolume(claim)
        return None

    def _as_seen_by(self, node: NodeInfo, reach: Reach) -> Reach:
        plugin, csi_reach = self.migrating.get(reach.volume.metadata.name, ("", reach))
        migrated = plugin and plugin in self._storage.migrated_plugins(node.name)
        return csi_reach if migrated else reach

    @property
    def untranslatable(self) -> list[str]:
        """Names of in-tree volumes without a CSI form."""
        return [name for name, (_, reach) in self.migrating.items() if not translates(reach.volume)]

    def _is_in_other_zone(self, labels: Labels) -> bool:
        if not any(label in labels for label in ZONE_LABELS):
            return False
        return any(
            labels.get(label, labels.get(ZONE_LABELS[label])) not in zones
            for label, zones in self._zones
        )

    def _unserved(self, node: NodeInfo) -> Failure | None:
        to_find: list[PersistentVolumeClaim] = []
        to_make: list[PersistentVolumeClaim] = []
        for claim in self._claims.waiting:
            selected = selected_node(claim)
            if selected is None:
                to_find.append(claim)
            elif selected != node.name:
                return NoVolume(claim.metadata.name)
            else:
                to_make.append(claim)
        chosen: set[str] = set()
        for claim in sorted(to_find, key=size_of):
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
    def _volumes(self) -> dict[str, Candidates]:
        return {
            claim.metadata.name: candidates(claim, self._storage) for claim in self._claims.waiting
        }

    @cached_property
    def _places(self) -> dict[str, _Places | None]:
        """Where a volume for each waiting claim can be provisioned; None: nowhere."""
        return {claim.metadata.name: self._places_of(claim) for claim in self._claims.waiting}

    def _places_of(self, claim: PersistentVolumeClaim) -> _Places | None:
        class_ = self._storage.get(StorageClass, class_of_claim(claim))
        if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
            return None
        topologies = topology_terms(class_.allowed_topologies)
        return topologies, capacities(claim, class_, self._storage)

    def _cannot_make(self, claim: PersistentVolumeClaim, labels: Labels) -> Failure | None:
        name = claim.metadata.name
        places = self._places[name]
        if places is None or not matches_any(places[0], labels):
            return NoVolume(name)
        spaces = places[1]
        has_space = spaces is None or matches_any(spaces.near(labels), labels)
        return None if has_space else NoStorage(name)


def _signature(claims: PodClaims, made: Iterable[list[TopologySelectorTerm]]) -> bytes:
    """Return a key that is equal for claims whose volumes the same nodes can reach."""
    bound = [
        (bound.volume.spec.node_affinity, _zone_labels(bound.volume), bound.ephemeral)
        if bound.volume
        else bound.claim.metadata.name
        for bound in claims.bound
    ]
    return msgspec.msgpack.encode((bound, list(made)))


def _zone_labels(volume: PersistentVolume) -> list[str | None]:
    labels = volume.metadata.labels or {}
    return [labels.get(label) for label in ZONE_LABELS]


def _zones(volume: PersistentVolume) -> Iterable[tuple[str, list[str]]]:
    """Yield each label of a volume that counts, with the zones or regions that it names."""
    for label, value in zip(ZONE_LABELS, _zone_labels(volume), strict=True):
        if value is None:
            continue
        zones = [zone.strip() for zone in value.split("__")]
        if all(zones):  # an empty zone makes the scheduler skip the label
            yield label, zones
